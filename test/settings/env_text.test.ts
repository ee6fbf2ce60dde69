// What each form of a line in an env file means: docs/reference.md "Env files".
import { describe, expect, it } from 'vitest';
import { parseEnvText } from '../../src/settings/env_text.ts';
import { TEXT_FILE } from '../../src/settings/limits.ts';

const read = (text: string, shell: Record<string, string> = {}) =>
  Object.fromEntries(parseEnvText(text, (name, own) => own ?? shell[name]));

describe('the value in an env file', () => {
  it.each([
    ['plain', 'A=b c', 'b c'],
    ['blanks around it', ' A  =\t b  ', 'b'],
    ['none', 'A=', ''],
    ['an equals sign', 'A=b=c', 'b=c'],
    ['quotes inside', `A=it's a "b"`, `it's a "b"`],
    ['the word export', 'export A=b', 'b'],
    ['CRLF', 'A=b\r\nB=c\r\n', 'b'],
    ['a comment', 'A=b # c', 'b'],
    ['a tab before the comment', 'A=b\t#c # d', 'b'],
    ['# without a blank before it', 'A=pa#ss', 'pa#ss'],
    ['# in a URL', 'A=http://h/#/x # c', 'http://h/#/x'],
    ['# at the start', 'A=#fff', '#fff'],
    ['only a comment', 'A= # c', ''],
    ['a line separator of Unicode', 'A=b\u2028c # d\u2028e', 'b\u2028c'],
    ['backslashes', 'A=C:\\new\\"x"', 'C:\\new\\"x"'],
    ['double quotes', 'A="b # c"', 'b # c'],
    ['an escaped quote', 'A="a\\"b"', 'a"b'],
    ['escapes', 'A="\\n\\r\\t\\\\n\\$B\\d"', '\n\r\t\\n$B\\d'],
    ['a backslash at the end', 'A="b\\\\"', 'b\\'],
    ['several lines', 'A="b\n# c=d\r\ne"\nB=c', 'b\n# c=d\ne'],
    ['a comment after quotes', 'A="b" # c"', 'b'],
    ['a comment right after quotes', 'A="b"#c', 'b'],
    ['single quotes', `A='b # "$B" \\n'`, 'b # "$B" \\n'],
    ['an escaped single quote', "A='it\\'s'", "it's"],
    ['several lines in single quotes', "A='b\nc'\nB=c", 'b\nc'],
    ['backticks', 'A=`it\'s "$B"\\`', 'it\'s "$B"\\'],
  ])('is read with %s', (_, text, value) => {
    expect(read(text, { B: 'shell' })['A']).toBe(value);
  });

  it.each([
    ['of an earlier line', 'B=1\nA=${B}x$B', '1x1'],
    ['in double quotes', 'B=1\nA="${B} \'$B\'"', "1 '1'"],
    ['of the shell', 'A=/x:$PATH', '/x:/bin'],
    ['of a later line', 'A=$B\nB=1', '$B'],
    ['that is replaced', 'B=1\nA=$B\nB=2', '1'],
    ['in the value of another', "C='$B'\nB=1\nA=$C", '$B'],
    ['that is not known', 'A=pa$word${X}', 'pa$word${X}'],
    ['that is escaped', 'B=1\nA=\\$B\\${B}', '$B${B}'],
    ['with a longer name', 'B=1\nA=$B_$B', '$B_1'],
    ['with a default', 'A=${X:-b c}${X-}', 'b c'],
    ['that is empty, with a default', 'B=\nA=${B:-x}${B-y}', 'x'],
    ['with a default and a value', 'B=1\nA=${B:-x}', '1'],
    ['with a variable as default', 'B=1\nA=${X:-${B}}$B', '11'],
    ['of the stack', 'A=${port.web} $${slug} ${stack}', '${port.web} $${slug} ${stack}'],
    ['that is no name', 'A=$1 ${2} $ ${ $$', '$1 ${2} $ ${ $$'],
  ])('has a variable %s', (_, text, value) => {
    expect(read(text, { PATH: '/bin' })['A']).toBe(value);
  });
});

describe('an env file', () => {
  it('has its variables in order, the last of a name, and other lines are skipped', () => {
    const text = '\uFEFFA=1\n\n  # B=2\nnothing\n=x\nexport C\n__proto__=3\nA=4';
    expect(parseEnvText(text)).toEqual([
      ['A', '4'],
      ['__proto__', '3'],
    ]);
  });

  it.each([
    ['A=1\nB="x\ny', 'line 2: the value has no closing quote'],
    ["A='x\n\ny'\nB=`", 'line 4: the value has no closing quote'],
    ['A="x"\nB="{"secret":1}"\n', 'line 2: the value has text after its closing quote'],
  ])('is refused for a quote that ends nowhere or too early: %j', (text, message) => {
    expect(() => parseEnvText(text)).toThrow(new Error(message));
  });

  it('cannot grow without bound', () => {
    const lines = Array.from({ length: 64 }, (_, at) => `A${at + 1}=$A${at}$A${at}`);
    expect(() => parseEnvText(`A0=x\n${lines.join('\n')}`)).toThrow('expand to more than');
  });

  it.each([' ', '\\ ', '${A:-', '${A:-$', '${A:-${}', '$A'])(
    'is read in linear time, also if it has only %j',
    (part) => {
      const value = part.repeat(TEXT_FILE.maxBytes / 4 / part.length);
      for (const quote of ['', '"', "'"]) expect(read(`A=${quote}${value}${quote}`)).toHaveProperty('A');
    },
  );
});
