// Where this code is. ES modules and CommonJS need different code for this, and neither form compiles as the other. So
// scripts/build.mjs writes this file's output for each of them. The lines below only declare the types.

/** The folder that the compiled code is in; in a host that is bundled into one file, the folder of that file. */
export const here: string = "";

/** The folder of this package, as long as it is not bundled into another one. */
export const packageRoot: string = "";

/**
 * The packages of the platforms beside this one, by their platforms. They stand there letter by letter, for tools that collect
 * the files of an application by reading its code (@vercel/nft; Next.js with it, for `serverExternalPackages`).
 */
export const siblings: Readonly<Record<string, string>> = {};
