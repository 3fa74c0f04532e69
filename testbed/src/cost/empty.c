/* A native module that does nothing: what calling one costs by itself. Hooks that Envoy requires, of the ABI v0.2.0. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOOK(name) envoy_dynamic_module_on_http_filter_##name

static const int nothing = 0;

const char *envoy_dynamic_module_on_program_init(void) { return "v0.2.0"; }

typedef struct {
    const char *ptr;
    size_t len;
} text;

const void *HOOK(config_new)(void *envoy, text name, text config) {
    (void)envoy, (void)name, (void)config;
    return &nothing;
}
void HOOK(config_destroy)(const void *config) { (void)config; }
const void *HOOK(new)(const void *config, void *envoy) {
    (void)envoy;
    return config;
}
void HOOK(destroy)(const void *filter) { (void)filter; }

/* 0: go on. */
#define STEP(name) \
    uint32_t HOOK(name)(void *envoy, const void *filter, bool end) { \
        (void)envoy, (void)filter, (void)end; \
        return 0; \
    }
STEP(request_headers)
STEP(request_body)
STEP(response_headers)
STEP(response_body)
uint32_t HOOK(request_trailers)(void *envoy, const void *filter) {
    (void)envoy, (void)filter;
    return 0;
}
uint32_t HOOK(response_trailers)(void *envoy, const void *filter) {
    (void)envoy, (void)filter;
    return 0;
}
void HOOK(stream_complete)(void *envoy, const void *filter) { (void)envoy, (void)filter; }

/* What a module that calls nobody out is never asked. */
#define NEVER(name) \
    void HOOK(name)(void) {}
NEVER(http_callout_done)
NEVER(http_stream_headers)
NEVER(http_stream_data)
NEVER(http_stream_trailers)
NEVER(http_stream_complete)
NEVER(http_stream_reset)
NEVER(scheduled)
NEVER(downstream_above_write_buffer_high_watermark)
NEVER(downstream_below_write_buffer_low_watermark)
