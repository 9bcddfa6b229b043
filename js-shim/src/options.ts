// Made by scripts/options.mjs of what fm-proxy --list-options prints: change helper/front/options.c and run that.

/** Options of createClient that become arguments of the helper, the variable of each, and what the value is. */
export const VALUES = [
  ["engine", "--engine", "FM_PROXY_ENGINE", "NAMES"],
  ["remote", "--remote", "FM_PROXY_REMOTE", "FILE"],
  ["engineDir", "--engine-dir", "FM_PROXY_ENGINE_DIR", "DIR"],
  ["model", "--model", "FM_PROXY_MODEL", "PATH_OR_ID"],
  ["aliases", "--aliases", "FM_PROXY_ALIASES", "LIST"],
  ["modelsDir", "--models-dir", "FM_PROXY_MODELS_DIR", "DIR"],
  ["mmproj", "--mmproj", "FM_PROXY_MMPROJ", "FILE"],
  ["draftModel", "--draft-model", "FM_PROXY_DRAFT_MODEL", "FILE"],
  ["chatTemplate", "--chat-template", "FM_PROXY_CHAT_TEMPLATE", "FILE"],
  ["gpu", "--gpu", "FM_PROXY_GPU", "HOW"],
  ["gpuDir", "--gpu-dir", "FM_PROXY_GPU_DIR", "DIR"],
  ["idleUnloadMs", "--idle-unload-ms", "FM_PROXY_IDLE_UNLOAD_MS", "MS"],
  ["maxEngines", "--max-engines", "FM_PROXY_MAX_ENGINES", "N"],
  ["memoryBudget", "--memory-budget", "FM_PROXY_MEMORY_BUDGET", "BYTES"],
  ["store", "--store", "FM_PROXY_STORE", "FILE"],
  ["storeBytes", "--store-bytes", "FM_PROXY_STORE_BYTES", "BYTES"],
  ["kvCacheDir", "--kv-cache-dir", "FM_PROXY_KV_CACHE_DIR", "DIR"],
  ["kvCacheBytes", "--kv-cache-bytes", "FM_PROXY_KV_CACHE_BYTES", "BYTES"],
  ["logLevel", "--log-level", "FM_PROXY_LOG_LEVEL", "LEVEL"],
] as const;

/** The same for those without a value, and with which value of the option they are given. */
export const SWITCHES = [
  ["kvCacheFiles", "--no-kv-cache-files", "FM_PROXY_NO_KV_CACHE_FILES", false],
  ["strictParameters", "--strict-parameters", "FM_PROXY_STRICT_PARAMETERS", true],
] as const;
