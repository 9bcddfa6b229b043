// What no client needs before its first call. It is a separate file, dist/later.cjs, which that call loads: a host that never
// asks anything does not wait for it.
export { catalogModel, searchCatalog } from "./catalog.js";
export { Core } from "./core.js";
export { findModel } from "./find-model.js";
export { noteUsable, whyNotGguf } from "./download.js";
export { memoryOf, readFacts } from "./gguf.js";
export { parseHubReference } from "./hub.js";
export { defaultModel, findModels, idOf, isFirstPart, isUsable } from "./model-files.js";
export { ownModels, partsOf, readAbilities, sizeOf } from "./model-files.js";
export { spawnError } from "./process.js";
export { checkIdle, pullModel, verifyModel } from "./pull.js";
export { chooseModel, forgetChoice, lostModel } from "./default-model.js";
export { argumentOf, chosenFor, findRunnable, modelsFor, withModelFile } from "./start.js";
