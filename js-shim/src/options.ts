// Made by scripts/options.mjs of what fm-proxy --list-options prints: change helper/front/options.c and run that.

/** Options of createClient that become arguments of the helper, and the variable that sets each instead. */
export const VALUES = [
  ["engine", "--engine", "FM_PROXY_ENGINE"],
  ["remote", "--remote", "FM_PROXY_REMOTE"],
  ["engineDir", "--engine-dir", "FM_PROXY_ENGINE_DIR"],
  ["model", "--model", "FM_PROXY_MODEL"],
  ["aliases", "--aliases", "FM_PROXY_ALIASES"],
  ["modelsDir", "--models-dir", "FM_PROXY_MODELS_DIR"],
  ["mmproj", "--mmproj", "FM_PROXY_MMPROJ"],
  ["draftModel", "--draft-model", "FM_PROXY_DRAFT_MODEL"],
  ["chatTemplate", "--chat-template", "FM_PROXY_CHAT_TEMPLATE"],
  ["gpu", "--gpu", "FM_PROXY_GPU"],
  ["gpuDir", "--gpu-dir", "FM_PROXY_GPU_DIR"],
  ["idleUnloadMs", "--idle-unload-ms", "FM_PROXY_IDLE_UNLOAD_MS"],
  ["maxEngines", "--max-engines", "FM_PROXY_MAX_ENGINES"],
  ["memoryBudget", "--memory-budget", "FM_PROXY_MEMORY_BUDGET"],
  ["store", "--store", "FM_PROXY_STORE"],
  ["storeBytes", "--store-bytes", "FM_PROXY_STORE_BYTES"],
  ["kvCacheDir", "--kv-cache-dir", "FM_PROXY_KV_CACHE_DIR"],
  ["kvCacheBytes", "--kv-cache-bytes", "FM_PROXY_KV_CACHE_BYTES"],
  ["logLevel", "--log-level", "FM_PROXY_LOG_LEVEL"],
] as const;

/** The same for those without a value, and with which value of the option they are given. */
export const SWITCHES = [
  ["kvCacheFiles", "--no-kv-cache-files", "FM_PROXY_NO_KV_CACHE_FILES", false],
  ["strictParameters", "--strict-parameters", "FM_PROXY_STRICT_PARAMETERS", true],
] as const;
