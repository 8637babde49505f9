// Returns at once.
kernel void empty() {
}
