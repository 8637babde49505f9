// x * 2 + 1 in two kernels and in one. Bytes: 8 n a kernel.
kernel void double_(global const float *x, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = x[i] * 2.0f;
}

kernel void plus_one_(global const float *x, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = x[i] + 1.0f;
}

kernel void double_plus_one_(global const float *x, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = x[i] * 2.0f + 1.0f;
}
