// The code that a client needs only after its first call. The first call loads this code from a separate file, dist/later.cjs. So
// a host that never makes a call does not wait for it.
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
