// The requests of the dashboard that wait for their turn.
import { describe, expect, it } from 'vitest';
import { Turns } from '../../src/dashboard/state/turns.ts';
import { must } from '../kit/must.ts';

/** Work that ends when told to, and notes when it begins. */
function works() {
  const begun: string[] = [];
  const ends = new Map<string, { resolve: (value: null) => void; reject: (error: Error) => void }>();
  const work = (key: string) => (): Promise<null> => {
    begun.push(key);
    return new Promise((resolve, reject) => {
      ends.set(key, { resolve, reject });
    });
  };
  return { begun, work, end: (key: string) => must(ends.get(key)) };
}

describe('turns', () => {
  it('begin in the order of the calls, as many at once as the limit then is', async () => {
    const { begun, end, work } = works();
    let limit = 2;
    const turns = new Turns(() => limit);
    const results = ['a', 'b', 'c', 'd'].map((key) => turns.run(key, work(key)));
    await Promise.resolve();
    expect(begun).toEqual(['a', 'b']);
    limit = 1;
    end('b').resolve(null);
    await results[1];
    expect(begun).toEqual(['a', 'b']);
    end('a').reject(new Error('refused'));
    await expect(results[0]).rejects.toThrow('refused');
    expect(begun).toEqual(['a', 'b', 'c']);
    end('c').resolve(null);
    await results[2];
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
  });

  it('drop what has not begun, and leave alone what has', async () => {
    const { begun, end, work } = works();
    const turns = new Turns(() => 1);
    const [first, second, third] = ['a', 'a', 'b'].map((key) => turns.run(key, work(key)));
    turns.drop('a');
    await second;
    end('a').resolve(null);
    await first;
    end('b').resolve(null);
    await third;
    expect(begun).toEqual(['a', 'b']);
  });
});
