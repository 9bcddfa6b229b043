// Selects the variables of the host's environment that the helper gets.

/** What the helper sees of the host's environment, besides `FM_*`. Nothing in it is secret. The README lists it. */
export const ENVIRONMENT: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "TMPDIR",
  "TEMP",
  "TMP",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "XDG_CACHE_HOME",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "PROCESSOR_ARCHITECTURE",
  "GGML_VK_VISIBLE_DEVICES",
  "VK_DRIVER_FILES",
  "VK_ICD_FILENAMES",
]);

/** The helper's environment: a few variables of the host's, and those that the caller adds. */
export function helperEnvironment(
  host: Record<string, string | undefined>,
  extra: Record<string, string> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(host)) {
    const upper = name.toUpperCase();
    if (value !== undefined && (ENVIRONMENT.has(upper) || upper.startsWith("FM_"))) env[name] = value;
  }
  return { ...env, ...extra };
}
