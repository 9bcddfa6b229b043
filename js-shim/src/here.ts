// Where this code is. ES modules and CommonJS need different code for this, and neither form compiles as the other. So
// scripts/build.mjs writes this file's output for each of them. The lines below only declare the types.

/** The folder of the compiled code. In a host that is bundled into one file, it is the folder of that file. */
export const here: string = "";

/** The folder of this package, if this package is not bundled into another one. */
export const packageRoot: string = "";

/**
 * The paths of the platforms' packages beside this one, by platform. They are written out, because some tools find the files of
 * an application by reading its code (@vercel/nft, and Next.js for `serverExternalPackages`).
 */
export const siblings: Readonly<Record<string, string>> = {};
