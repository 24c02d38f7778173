// T.device_assert that did not hold.
inline __device__ __noinline__ void assert_failed(const char* message) {
  printf("tilert: assertion failed: %s\n", message);
  __trap();
}
