// What no client needs before its first call. It is a file of its own, dist/later.cjs, which that call loads: a host that never
// asks anything does not wait for it.
export { Core } from "./core.js";
export { findModels } from "./model-files.js";
export { pullModel, verifyModel } from "./pull.js";
export { findRunnable } from "./start.js";
