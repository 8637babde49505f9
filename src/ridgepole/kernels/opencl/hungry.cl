// Keeps LIVE values of a thread in use at once. Bytes: 4 n + 4 n / LIVE.
kernel void hungry(global const float *a, global float *out, uint n) {
    uint t = get_global_id(0), apart = n / LIVE;
    if (t >= apart) return;
    float value[LIVE];
    for (uint j = 0; j < LIVE; j++) value[j] = a[t + j * apart];
    for (uint r = 0; r < ROUNDS; r++) {
        float mean = 0.0f;
        for (uint j = 0; j < LIVE; j++) mean += value[j] * (1.0f / LIVE);
        for (uint j = 0; j < LIVE; j++) value[j] = value[j] * 0.5f + mean * 0.5f;
    }
    float sum = 0.0f;
    for (uint j = 0; j < LIVE; j++) sum += value[j];
    out[t] = sum;
}
