// x = x * 0.5 + 1, `rounds` times. FLOPs: 2 threads rounds. Not fma(): PoCL 3.0 calls a library for it.
kernel void spin(global float *out, uint threads, uint rounds) {
    uint i = get_global_id(0);
    float x = (float)(i % STARTS);
    for (uint r = 0; r < rounds; r++) x = x * 0.5f + 1.0f;
    if (i < threads) out[i] = x;
}
