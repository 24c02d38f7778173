// Two neighbours, each by itself; `p` a multiple of 8. From sm_90 on.
DEV void atomic_add2(float* p, float x, float y) { asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" :: "l"(p), "f"(x), "f"(y) : "memory"); }
