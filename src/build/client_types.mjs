// Writes the types of the client's package: one file per entry, with every type written out. The types
// therefore depend neither on zod, from whose shapes they are inferred, nor on the types of Node.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  API,
  isIntersectionType,
  isObjectType,
  NodeBuilderFlags,
  SymbolFlags,
} from 'typescript/unstable/sync';
import { CLIENT_TYPES } from './client_package.mjs';

const FORMAT =
  NodeBuilderFlags.NoTruncation |
  NodeBuilderFlags.InTypeAlias |
  NodeBuilderFlags.UseSingleQuotesForStringLiteralType;

/** A name from another file, as the compiler writes it. */
const REFERENCE = /import\('([^']+)'\)\.(\w+)/g;

/** Whether a type has members that an interface can list. */
const hasMembers = (type) => isObjectType(type) || isIntersectionType(type);

/** Prints the declarations that a module exports, and the declarations that they refer to. */
class Declarations {
  constructor({ program, checker }, path) {
    this.program = program;
    this.checker = checker;
    this.file = program.getSourceFile(path);
    /** The printed declarations by name, which is unique in the source tree. */
    this.written = new Map();
    /** The names of object types, by the text that the compiler writes for each. */
    this.names = new Map();
  }

  /** Every exported declaration, each with its comment. */
  print() {
    const exported = this.exportsOf(this.file);
    // The longest text first, because one may contain another.
    const named = exported.flatMap((symbol) => this.writtenOut(symbol));
    this.names = new Map(named.sort(([one], [other]) => other.length - one.length));
    for (const symbol of exported) this.declare(symbol);
    return [...this.written.values()].join('\n');
  }

  exportsOf(file) {
    const { checker } = this;
    return checker
      .getExportsOfModule(checker.getSymbolAtLocation(file))
      .map((symbol) => (symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
  }

  /** The text that the compiler writes for the alias `symbol` within another type, with the alias's name. */
  writtenOut(symbol) {
    if (!(symbol.flags & SymbolFlags.TypeAlias)) return [];
    const type = this.checker.getDeclaredTypeOfSymbol(symbol);
    return hasMembers(type) ? [[this.checker.typeToString(type, this.file, FORMAT), symbol.name]] : [];
  }

  declare(symbol) {
    if (this.written.has(symbol.name)) return;
    // Set first, because a type may refer to itself.
    this.written.set(symbol.name, '');
    this.written.set(symbol.name, `${this.comment(symbol)}export ${this.declaration(symbol)}\n`);
  }

  declaration(symbol) {
    const { checker } = this;
    const { name, flags } = symbol;
    if (flags & SymbolFlags.Class) return this.classText(symbol);
    if (!(flags & (SymbolFlags.Interface | SymbolFlags.TypeAlias)))
      return `declare const ${name}: ${this.text(checker.getTypeOfSymbol(symbol))};`;
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    return hasMembers(type)
      ? `interface ${name} {\n${this.members(checker.getPropertiesOfType(type))}}`
      : `type ${name} = ${this.text(type)};`;
  }

  /** The text of a class. Its constructor is private, because only the client creates instances. */
  classText(symbol) {
    const { checker } = this;
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    const [base] = checker.getBaseTypes(type);
    const inherited = new Set(checker.getPropertiesOfType(base).map((one) => one.name));
    const own = checker
      .getPropertiesOfType(type)
      .filter((one) => one.name === 'name' || !inherited.has(one.name));
    const members = this.members(own, 'readonly ');
    return `declare class ${symbol.name} extends ${this.text(base)} {\n${members}  private constructor();\n}`;
  }

  members(symbols, modifier = '') {
    return symbols
      .map((symbol) => {
        const name = /^[\w$]+$/.test(symbol.name) ? symbol.name : `'${symbol.name}'`;
        const optional = symbol.flags & SymbolFlags.Optional ? '?' : '';
        const text = this.text(this.checker.getTypeOfSymbol(symbol));
        return `${this.comment(symbol, '  ')}  ${modifier}${name}${optional}: ${text};\n`;
      })
      .join('');
  }

  /** A type on one line. Also declares the types that it refers to. */
  text(type) {
    let text = this.checker.typeToString(type, this.file, FORMAT);
    for (const [written, name] of this.names) text = text.replaceAll(written, name);
    return (
      text
        .replace(REFERENCE, (_all, from, name) => {
          const file = this.program.getSourceFile(join(this.file.fileName, '..', from));
          this.declare(this.exportsOf(file).find((symbol) => symbol.name === name));
          return name;
        })
        // Generic only since TypeScript 5.7.
        .replaceAll('Uint8Array<ArrayBufferLike>', 'Uint8Array')
    );
  }

  comment(symbol, indent = '') {
    const text = this.checker.getDocumentationCommentOfSymbol(symbol).trim();
    if (text === '') return '';
    const [first, ...more] = text.split('\n');
    if (more.length === 0) return `${indent}/** ${first} */\n`;
    return `${indent}/**\n${[first, ...more].map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
  }
}

/** Writes the types of the client's package into the build in `output`. */
export function writeClientTypes(root, output) {
  const api = new API({ cwd: root });
  try {
    const configuration = join(root, 'src/client/tsconfig.json');
    const [project] = api.updateSnapshot({ openProjects: [configuration] }).getProjects();
    for (const [entry, file] of Object.entries(CLIENT_TYPES))
      writeFileSync(join(output, file), new Declarations(project, join(root, entry)).print());
  } finally {
    api.close();
  }
}
