/** The colours of highlighted code; their values are in theme.css. */
import { css } from "lit";

export const codeColours = css`
  .hljs-comment, .hljs-quote { color: var(--hl-comment); font-style: italic; }
  .hljs-keyword, .hljs-selector-tag, .hljs-literal, .hljs-deletion, .hljs-operator { color: var(--hl-keyword); }
  .hljs-string, .hljs-regexp, .hljs-addition, .hljs-attribute, .hljs-meta-string { color: var(--hl-string); }
  .hljs-number, .hljs-symbol, .hljs-bullet, .hljs-variable, .hljs-template-variable { color: var(--hl-number); }
  .hljs-title, .hljs-section, .hljs-name, .hljs-selector-id, .hljs-selector-class { color: var(--hl-title); }
  .hljs-type, .hljs-built_in, .hljs-attr, .hljs-params .hljs-type, .hljs-meta { color: var(--hl-type); }
`;
