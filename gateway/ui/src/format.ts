/** Numbers, times and titles as people read them. Pure. */
import type { Session, Usage } from "./protocol.js";

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function tokens(count: number): string {
  return count < 10_000 ? count.toLocaleString("en") : compact.format(count);
}

/** "1,204 in · 310 out · $0.0042". A local model costs nothing; an unknown price is left out. */
export function usageLine({ inputTokens, outputTokens, costUsd }: Usage): string {
  const words = [`${tokens(inputTokens)} in`, `${tokens(outputTokens)} out`];
  if (costUsd !== undefined && costUsd > 0) words.push(cost(costUsd));
  return words.join(" · ");
}

export function cost(usd: number): string {
  return `$${usd < 0.01 ? usd.toPrecision(2) : usd.toFixed(2)}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export function clock(time: number): string {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export function titleOf({ title }: Pick<Session, "title">): string {
  return title?.trim() || "New chat";
}

export function bytes(count: number): string {
  return count < 1024
    ? `${count} bytes`
    : count < 1024 ** 2
      ? `${(count / 1024).toFixed(1)} KiB`
      : `${(count / 1024 ** 2).toFixed(1)} MiB`;
}

export interface Group {
  name: string;
  sessions: Session[];
}

/** Groups sessions by age, the newest first. */
export function groups(sessions: Session[], now: number): Group[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const names: [string, number][] = [
    ["Today", midnight],
    ["Yesterday", midnight - day],
    ["Previous 7 days", midnight - 7 * day],
    ["Previous 30 days", midnight - 30 * day],
    ["Older", -Infinity],
  ];
  const sorted = [...sessions].sort((a, b) => (b.updatedAt ?? 0) - (a.updatedAt ?? 0));
  const found = names.map(([name]): Group => ({ name, sessions: [] }));
  for (const session of sorted) {
    found[names.findIndex(([, from]) => (session.updatedAt ?? now) >= from)]?.sessions.push(session);
  }
  return found.filter((group) => group.sessions.length > 0);
}
