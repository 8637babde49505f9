// Returns at once.
#include <metal_stdlib>
using namespace metal;

kernel void empty() {
}
