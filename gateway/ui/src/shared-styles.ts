/** What all components have in common: the box, focus, buttons, icons, scroll bars. */
import { css } from "lit";

export const shared = css`
  *,
  *::before,
  *::after {
    box-sizing: border-box;
  }
  [hidden] {
    display: none !important;
  }
  h1, h2, h3, p, ul, ol, dl, dd, figure {
    margin: 0;
  }
  button, input, textarea, select {
    font: inherit;
    color: inherit;
  }
  :focus {
    outline: none;
  }
  :focus-visible {
    outline: 2px solid var(--focus);
    outline-offset: 2px;
  }
  .icon {
    flex: none;
    display: block;
    fill: none;
    stroke: currentColor;
    stroke-width: 1.75;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .icon.solid {
    fill: currentColor;
    stroke: none;
  }
  .button {
    display: inline-flex;
    align-items: center;
    justify-content: center;
    gap: 0.5rem;
    min-height: 2.5rem;
    padding: 0 1rem;
    border: 1px solid var(--border);
    border-radius: var(--radius-s);
    background: var(--surface);
    font-weight: 550;
    font-size: var(--text-m);
    cursor: pointer;
    transition: background 0.12s var(--ease), border-color 0.12s var(--ease);
  }
  .button:hover {
    background: linear-gradient(var(--hover), var(--hover)) var(--surface);
    border-color: var(--border-strong);
  }
  .button.primary {
    border-color: transparent;
    background: var(--accent);
    color: var(--on-accent);
  }
  .button.primary:hover {
    background: var(--accent-hover);
  }
  .button.danger {
    border-color: transparent;
    background: var(--danger);
    color: var(--on-danger);
  }
  .button.danger:hover {
    background: var(--danger-hover);
  }
  .button.small {
    min-height: 2rem;
    padding: 0 0.75rem;
    font-size: var(--text-s);
  }
  .icon-button {
    flex: none;
    display: inline-grid;
    place-items: center;
    width: 2.25rem;
    height: 2.25rem;
    padding: 0;
    border: 0;
    border-radius: var(--radius-s);
    background: none;
    color: var(--muted);
    cursor: pointer;
    transition: background 0.12s var(--ease), color 0.12s var(--ease);
  }
  .icon-button:hover {
    background: var(--hover);
    color: var(--text);
  }
  .icon-button.small {
    width: 1.875rem;
    height: 1.875rem;
  }
  .button:disabled,
  .icon-button:disabled {
    opacity: 0.5;
    cursor: default;
  }
  .field {
    width: 100%;
    min-height: 2.5rem;
    padding: 0 0.75rem;
    border: 1px solid var(--border-strong);
    border-radius: var(--radius-s);
    background: var(--surface);
  }
  .field:focus-visible {
    outline-offset: -1px;
  }
  ::placeholder {
    color: var(--muted);
    opacity: 1;
  }
  .sr-only {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: -1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
  .scroll {
    overflow-y: auto;
    scrollbar-width: thin;
    scrollbar-color: var(--border-strong) transparent;
  }
  .spinner {
    flex: none;
    width: 1rem;
    height: 1rem;
    border: 2px solid var(--border);
    border-top-color: var(--accent);
    border-radius: 50%;
    animation: turn 0.8s linear infinite;
  }
  @keyframes turn {
    to {
      transform: rotate(1turn);
    }
  }
  @media (prefers-reduced-motion: reduce) {
    *,
    *::before,
    *::after {
      animation-duration: 0.01ms !important;
      animation-iteration-count: 1 !important;
      transition: none !important;
      scroll-behavior: auto !important;
    }
    .spinner {
      animation: none !important;
    }
  }
  @media (pointer: coarse) {
    .icon-button,
    .icon-button.small {
      width: 2.5rem;
      height: 2.5rem;
    }
  }
`;
