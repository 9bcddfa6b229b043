/*
 * Formats of keys, from the documentation of the services that issue them. No length limit is below the length of real
 * keys, so that examples in documents ("sk-...") stay.
 */
#include "security/key_formats.h"

#include <string.h>

#define TEXT(t)             {.literal = (t)}
#define RUN(set, least)     {.classes = (set), .min = (least)}
#define SPAN(set, from, to) {.classes = (set), .min = (from), .max = (to)}

const struct gw_key_format gw_key_formats[] = {
    {.name = "Anthropic", .parts = {TEXT("sk-ant-"), RUN(GW_URL64, 24)}},
    {.name = "OpenAI, project", .parts = {TEXT("sk-proj-"), RUN(GW_URL64, 24)}, .mixed = true},
    {.name = "OpenAI, OpenRouter, DeepSeek and others", .parts = {TEXT("sk-"), RUN(GW_URL64, 20)}, .mixed = true},
    {.name = "GitHub, personal", .parts = {TEXT("ghp_"), RUN(GW_ALNUM, 36)}},
    {.name = "GitHub, OAuth", .parts = {TEXT("gho_"), RUN(GW_ALNUM, 36)}},
    {.name = "GitHub, user to server", .parts = {TEXT("ghu_"), RUN(GW_ALNUM, 36)}},
    {.name = "GitHub, server to server", .parts = {TEXT("ghs_"), RUN(GW_ALNUM, 36)}},
    {.name = "GitHub, refresh", .parts = {TEXT("ghr_"), RUN(GW_ALNUM, 36)}},
    {.name = "GitHub, fine-grained", .parts = {TEXT("github_pat_"), RUN(GW_WORD, 40)}},
    {.name = "GitLab", .parts = {TEXT("glpat-"), RUN(GW_URL64, 20)}},
    {.name = "Slack, bot", .parts = {TEXT("xoxb-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, user", .parts = {TEXT("xoxp-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, workspace", .parts = {TEXT("xoxa-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, refresh", .parts = {TEXT("xoxr-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, session", .parts = {TEXT("xoxs-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, app", .parts = {TEXT("xapp-"), RUN(GW_ALNUM | GW_DASH, 20)}},
    {.name = "Slack, webhook",
     .parts = {TEXT("hooks.slack.com/services/"), RUN(GW_ALNUM | GW_BASE64, 30)},
     .kept = 1,
     .anywhere = true},
    {.name = "AWS, long-term id", .parts = {TEXT("AKIA"), SPAN(GW_DIGIT | GW_UPPER, 16, 16)}, .exact = true},
    {.name = "AWS, temporary id", .parts = {TEXT("ASIA"), SPAN(GW_DIGIT | GW_UPPER, 16, 16)}, .exact = true},
    {.name = "Google, API key", .parts = {TEXT("AIza"), SPAN(GW_URL64, 35, 35)}, .exact = true},
    {.name = "Google, access token", .parts = {TEXT("ya29."), RUN(GW_URL64 | GW_DOT, 30)}},
    {.name = "Google, client secret", .parts = {TEXT("GOCSPX-"), RUN(GW_URL64, 24)}},
    {.name = "npm", .parts = {TEXT("npm_"), RUN(GW_ALNUM, 36)}},
    {.name = "PyPI", .parts = {TEXT("pypi-"), RUN(GW_URL64, 80)}},
    {.name = "crates.io", .parts = {TEXT("cio"), SPAN(GW_ALNUM, 32, 32)}, .exact = true, .mixed = true},
    {.name = "Hugging Face", .parts = {TEXT("hf_"), RUN(GW_ALNUM, 30)}},
    {.name = "Stripe, live", .parts = {TEXT("sk_live_"), RUN(GW_ALNUM, 16)}},
    {.name = "Stripe, test", .parts = {TEXT("sk_test_"), RUN(GW_ALNUM, 16)}},
    {.name = "Stripe, restricted", .parts = {TEXT("rk_live_"), RUN(GW_ALNUM, 16)}},
    {.name = "Stripe, webhook", .parts = {TEXT("whsec_"), RUN(GW_ALNUM | GW_BASE64, 24)}},
    {.name = "SendGrid", .parts = {TEXT("SG."), SPAN(GW_URL64, 20, 24), TEXT("."), RUN(GW_URL64, 39)}},
    {.name = "DigitalOcean", .parts = {TEXT("dop_v1_"), RUN(GW_HEX, 64)}},
    {.name = "Shopify", .parts = {TEXT("shpat_"), RUN(GW_HEX, 32)}},
    {.name = "Grafana", .parts = {TEXT("glsa_"), RUN(GW_WORD, 32)}},
    {.name = "Linear", .parts = {TEXT("lin_api_"), RUN(GW_ALNUM, 32)}},
    {.name = "Groq", .parts = {TEXT("gsk_"), RUN(GW_ALNUM, 40)}},
    {.name = "xAI", .parts = {TEXT("xai-"), RUN(GW_ALNUM, 60)}},
    {.name = "NVIDIA", .parts = {TEXT("nvapi-"), RUN(GW_URL64, 60)}},
    {.name = "Replicate", .parts = {TEXT("r8_"), RUN(GW_ALNUM, 37)}},
    {.name = "Perplexity", .parts = {TEXT("pplx-"), RUN(GW_ALNUM, 40)}},
    {.name = "Tailscale", .parts = {TEXT("tskey-"), RUN(GW_ALNUM | GW_DASH, 20)}, .mixed = true},
    {.name = "age", .parts = {TEXT("AGE-SECRET-KEY-1"), RUN(GW_DIGIT | GW_UPPER, 50)}},
    {.name = "Docker Hub", .parts = {TEXT("dckr_pat_"), RUN(GW_URL64, 24)}},
    {.name = "Vault", .parts = {TEXT("hvs."), RUN(GW_URL64, 24)}},
    {.name = "Atlassian", .parts = {TEXT("ATATT3"), RUN(GW_URL64 | GW_BASE64, 60)}},
    {.name = "Postman", .parts = {TEXT("PMAK-"), RUN(GW_ALNUM | GW_DASH, 50)}},
    {.name = "1Password, service account", .parts = {TEXT("ops_eyJ"), RUN(GW_URL64 | GW_BASE64, 60)}},
    {.name = "Databricks", .parts = {TEXT("dapi"), SPAN(GW_HEX, 32, 32)}, .exact = true},
    {.name = "Telegram, bot",
     .parts = {SPAN(GW_DIGIT, 8, 10), TEXT(":AA"), SPAN(GW_URL64, 32, 35)},
     .exact = true,
     .kept = 1,
     .anywhere = true}, /* .../bot12345678:AA... */
    {.name = "JSON Web Token (RFC 7519)",
     .parts = {TEXT("eyJ"), SPAN(GW_URL64, 12, 1024), TEXT("."), RUN(GW_URL64 | GW_DOT, 16)}},
    {.name = "bearer token (RFC 6750)",
     .parts = {TEXT("bearer "), RUN(GW_URL64 | GW_DOT | GW_BASE64 | GW_TILDE, 16)},
     .kept = 1,
     .any_case = true,
     .mixed = true},
    {.name = "basic authentication (RFC 7617)",
     .parts = {TEXT("authorization: basic "), RUN(GW_ALNUM | GW_BASE64, 8)},
     .kept = 1,
     .any_case = true},
    {.name = "password in a URL",
     .parts = {TEXT("://"), SPAN(GW_USER, 0, 64), TEXT(":"), SPAN(GW_URL_PASS, 1, 256), TEXT("@")},
     .kept = 3,
     .kept_end = 1,
     .anywhere = true},
};

const size_t gw_key_format_count = sizeof gw_key_formats / sizeof *gw_key_formats;

_Static_assert(sizeof gw_key_formats / sizeof *gw_key_formats <= GW_FORMATS_MAX, "a bit for each");

uint16_t gw_classes_of(unsigned char c) {
    uint16_t classes = 0;
    classes |= c >= '0' && c <= '9' ? GW_DIGIT | GW_HEX : 0;
    classes |= c >= 'A' && c <= 'Z' ? GW_UPPER : 0;
    classes |= c >= 'a' && c <= 'z' ? GW_LOWER : 0;
    classes |= c >= 'a' && c <= 'f' ? GW_HEX : 0;
    classes |= c == '_' ? GW_UNDERSCORE : 0;
    classes |= c == '-' ? GW_DASH : 0;
    classes |= c == '.' ? GW_DOT : 0;
    classes |= c == '+' || c == '/' || c == '=' ? GW_BASE64 : 0;
    classes |= c == '~' ? GW_TILDE : 0;
    if (c > ' ' && c != 0x7f && !strchr("\"'`<>()[]{}\\/@", c)) {
        classes |= c == ':' ? GW_URL_PASS : GW_URL_PASS | GW_USER;
    }
    return classes;
}
