/** How the page is built: into the folder beside the programs, where fm-gateway looks for it. */
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../../build/bin/gateway-ui",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content security policy does not allow data: for scripts and styles
    reportCompressedSize: false,
    license: { fileName: "licenses.txt" },
  },
  // `fm-gateway --dev` lets this origin connect.
  server: {
    port: 5173,
    strictPort: true,
    proxy: { "/ws": { target: "ws://127.0.0.1:18789", ws: true } },
  },
});
