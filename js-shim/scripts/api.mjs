// Makes docs/api.md, the API reference, of the package's types. With --check it only compares.
// usage: node scripts/api.mjs [--check]        (after a build)
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const types = join(root, "dist", "index.d.cts");
const file = join(root, "..", "docs", "api.md");

const HEAD = `# API reference of the npm package

Made of the types by \`node js-shim/scripts/api.mjs\`. How to use them: [package.md](package.md). A member with
\`?\` may be absent.
`;

/** The reference, as text. */
function reference() {
  const program = ts.createProgram([types], { noEmit: true });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(types);
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).map((symbol) => resolved(checker, symbol));
  const order = [...symbols].sort((one, other) => one.name.localeCompare(other.name, "en"));
  const parts = { Functions: [], Classes: [], "Types of requests, answers and options": [] };
  for (const symbol of order) {
    const [declaration] = symbol.declarations ?? [];
    if (declaration === undefined) continue;
    if (ts.isFunctionDeclaration(declaration)) parts.Functions.push(functionText(symbol, declaration));
    else if (ts.isClassDeclaration(declaration)) parts.Classes.push(membersText(checker, symbol, declaration));
    else parts["Types of requests, answers and options"].push(typeText(checker, symbol, declaration));
  }
  const sections = Object.entries(parts).map(([title, texts]) => `\n## ${title}\n\n${texts.join("\n")}`);
  return HEAD + sections.join("").replace(/\n{3,}/g, "\n\n").split("\n").map(broken).join("\n");
}

/** A line of text or code, broken into lines of up to 120 characters; a row of a table can't be broken. */
function broken(line) {
  if (line.startsWith("| `") || line.startsWith("|-")) return line;
  return line.replace(/(?=.{121})(.{1,120}) /g, "$1\n");
}

const resolved = (checker, symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);

function functionText(symbol, declaration) {
  const parameters = declaration.parameters.map(oneLine).join(", ");
  const signature = `${symbol.name}${generics(declaration)}(${parameters}): ${oneLine(declaration.type)}`;
  return `### ${symbol.name}\n\n\`\`\`text\n${signature}\n\`\`\`\n\n${docOf(declaration)}\n`;
}

/** A type: its members as a table, or the type that it is an alias of. */
function typeText(checker, symbol, declaration) {
  if (ts.isInterfaceDeclaration(declaration)) return membersText(checker, symbol, declaration);
  const text = ts.isTypeAliasDeclaration(declaration) ? oneLine(declaration.type) : oneLine(declaration);
  const lines = text.replaceAll(" | {", "\n| {");
  return `### ${symbol.name}\n\n${docOf(declaration)}\n\n\`\`\`text\n${lines}\n\`\`\`\n`;
}

function membersText(checker, symbol, declaration) {
  const bases = (declaration.heritageClauses ?? []).flatMap((clause) => clause.types.map(oneLine));
  if (bases.some((base) => base.startsWith("Omit<"))) return allMembersText(checker, symbol, declaration);
  const also = bases.length > 0 ? ` Has the members of ${bases.map((base) => `\`${base}\``).join(", ")} too.` : "";
  const rows = declaration.members.filter(isPublic).map((member) => `| \`${cell(nameOf(member))}\` | ${cell(docOf(member))} |`);
  const table = rows.length > 0 ? `\n| Member | |\n|---|---|\n${rows.join("\n")}\n` : "";
  return `### ${symbol.name}${generics(declaration)}\n\n${docOf(declaration)}${also}\n${table}`;
}

/** The same for a type with a base `Omit<...>`, including the members that are left of the base. */
function allMembersText(checker, symbol, declaration) {
  const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).map((it) => it.declarations[0]);
  const rows = members.map((member) => `| \`${cell(nameOf(member))}\` | ${cell(docOf(member))} |`);
  return `### ${symbol.name}${generics(declaration)}\n\n${docOf(declaration)}\n\n| Member | |\n|---|---|\n${rows.join("\n")}\n`;
}

/** Whether a member is public: no constructor, no name with #, and not marked as internal. */
function isPublic(member) {
  if (ts.isConstructorDeclaration(member) || (member.name && ts.isPrivateIdentifier(member.name))) return false;
  return !ts.getJSDocTags(member).some((tag) => tag.tagName.text === "internal");
}

function nameOf(member) {
  return oneLine(member).replace(/^readonly /, "").replace(/ \| undefined(?=;|$)/, "").replace(/;$/, "");
}

const generics = ({ typeParameters }) => (typeParameters ? `<${typeParameters.map(oneLine).join(", ")}>` : "");

/** The text of a part of the types, without its comments. */
function oneLine(node) {
  const text = node.getText().replace(/\/\*\*[^]*?\*\//g, " ");
  return text.replace(/^export (declare )?/, "").replace(/\s+/g, " ").trim();
}

/** The text of the comment, with the tags that are meant for readers. */
function docOf(node) {
  const [doc] = node.jsDoc?.slice(-1) ?? [];
  if (doc === undefined) return "";
  const text = plain(ts.getTextOfJSDocComment(doc.comment) ?? "");
  const throws = (doc.tags ?? []).filter((tag) => tag.tagName.text === "throws");
  return [text, ...throws.map((tag) => `Throws: ${plain(ts.getTextOfJSDocComment(tag.comment) ?? "")}`)].join(" ").trim();
}

const plain = (text) => text.replace(/\{@link ([^}]+)\}/g, "`$1`").replace(/\s+/g, " ").trim();
const cell = (text) => text.replaceAll("|", "\\|");

/** Whether docs/api.md matches the types. */
export const isUpToDate = () => readFileSync(file, "utf8") === reference();

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes("--check")) process.exitCode = isUpToDate() ? 0 : 1;
  else writeFileSync(file, reference());
}
