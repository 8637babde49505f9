// Returns at once.
extern "C" __global__ void empty() {
}
