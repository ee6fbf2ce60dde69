// A full-screen program with bracketed paste on, as coding agents have it: it appends every prompt that is
// submitted to the file of its argument, as a line of JSON.
import { appendFileSync } from 'node:fs';

const [file] = process.argv.slice(2);
const PASTE = /\x1b\[200~([\s\S]*?)\x1b\[201~/;
let input = '';
let text = '';

const draw = (note) =>
  process.stdout.write(`\x1b[2J\x1b[H${note}\r\n> ${text.slice(-40).replaceAll('\n', ' ')}`);

process.stdin.setRawMode(true);
process.stdin.setEncoding('utf8');
process.stdout.write('\x1b[?1049h\x1b[?2004h');
draw('ready');
process.stdin.on('data', (more) => {
  input += more;
  for (;;) {
    if (input.startsWith('\x1b')) {
      const paste = PASTE.exec(input);
      if (!paste) return;
      text += paste[1];
      input = input.slice(paste[0].length);
    } else if (input === '') break;
    else {
      const [key] = input;
      input = input.slice(key.length);
      if (key !== '\r') text += key;
      else {
        appendFileSync(file, `${JSON.stringify(text)}\n`);
        text = '';
      }
    }
  }
  draw('moved');
});
