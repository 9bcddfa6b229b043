/** The icons, as strokes on a grid of 24. They are decoration: the name is on the control. */
import { svg, html, type TemplateResult } from "lit";

const PATHS = {
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5 12 4.5 4.5",
  menu: "M4 7h16M4 12h16M4 17h10",
  sidebar: "M5 4h14a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2Zm4 0v16",
  compose: "M12 20h8M16.5 4.2a2.1 2.1 0 0 1 3 3L8 18.7 4 20l1.3-4Z",
  send: "M12 19V5M6 11l6-6 6 6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  copy:
    "M9 9h10a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H9a1 1 0 0 1-1-1V10a1 1 0 0 1 1-1Z" +
    "M5 15H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1h10a1 1 0 0 1 1 1v1",
  check: "m5 12.5 4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  chevron: "m9 6 6 6-6 6",
  retry: "M4 12a8 8 0 0 1 13.7-5.6L20 8.5M20 4v4.5h-4.5M20 12a8 8 0 0 1-13.7 5.6L4 15.5M4 20v-4.5h4.5",
  edit: "M4 20h4L19 9a2.1 2.1 0 0 0-3-3L5 17Z",
  trash: "M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13M10 11v5M14 11v5",
  save: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  terminal: "M4 5h16a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1Zm3 4.5 3 2.5-3 2.5M12.5 15H17",
  globe: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 0c5 5 5 13 0 18-5-5-5-13 0-18ZM3.5 9h17M3.5 15h17",
  tool: "M14.5 6.5a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4.5 4.5 0 0 1-6.5 5.5L8 21.5 3.5 17l8-8a4.5 4.5 0 0 1 3-2.5Z",
  warn: "M12 4 2.5 20h19L12 4Zm0 6v4.5M12 17.2v.1",
  clock: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 4.5V12l3 2",
  shield: "M12 3 4.5 6v5.5c0 4.6 3.1 7.8 7.5 9.5 4.4-1.7 7.5-4.9 7.5-9.5V6L12 3Z",
  sun:
    "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8Z" +
    "M12 2v2.5M12 19.5V22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M2 12h2.5M19.5 12H22M4.9 19.1l1.8-1.8M17.3 6.7l1.8-1.8",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  system: "M4 5h16a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1Zm5 15h6M12 16v4",
  help: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm-2.7 6.8a2.8 2.8 0 1 1 4 2.5c-.9.4-1.3.9-1.3 1.9M12 17v.1",
  logout: "M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M10 12h11M17 8l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function icon(name: IconName, size = 18): TemplateResult {
  const shape = svg`<path d=${PATHS[name]}></path>`;
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true">${shape}</svg>`;
}

export function stopIcon(): TemplateResult {
  return html`<svg class="icon solid" width="18" height="18" viewBox="0 0 24 24" aria-hidden="true">
    ${svg`<rect x="6.5" y="6.5" width="11" height="11" rx="2.5"></rect>`}
  </svg>`;
}
