/**
 * The folder that the compiled files are in; in a bundle, the folder of the bundle. ES modules and CommonJS tell it in ways
 * that do not compile in each other, so scripts/build.mjs writes this file's output for each; this line only gives its type.
 */
export const here: string = "";
