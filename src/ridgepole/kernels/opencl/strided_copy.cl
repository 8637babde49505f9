// out[i] = a[(i * stride) mod n], n a power of two. Useful bytes: 8 n; lines moved: by the stride.
kernel void strided_copy(global const float *a, global float *out, uint n, uint stride) {
    uint i = get_global_id(0);
    if (i < n) out[i] = a[(i * stride) & (n - 1)];
}
