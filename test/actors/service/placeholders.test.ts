// docs/reference.md "Placeholders".
import { describe, expect, it } from 'vitest';
import { filledSpec, neighbourVariables } from '../../../src/actors/service/placeholders.ts';
import { spec } from '../../kit/service_inputs.ts';

const PORTS = [
  { name: 'shop--login--api', port: 3101, protocol: 'http' },
  { name: 'shop--login--my_db-2', port: 3102, protocol: 'tcp' },
  { name: 'shop--login--queue', port: null, protocol: 'http' },
  { name: 'shop--login--web', port: 3100, protocol: 'http' },
] as const;
const web = (more: Parameters<typeof spec>[0] = {}) =>
  spec({ name: 'shop--login--web', stack: 'shop--login', port: 3100, ...more });

describe('a placeholder', () => {
  it.each([
    ['serve ${port.api} $PORT $$ ${HOME}', 'serve 3101 $PORT $$ ${HOME}'],
    ['${url.my_db-2}/x ${port.web} ${url.web}', 'tcp://localhost:3102/x 3100 http://localhost:3100'],
    ['${host.my_db-2} ${host.queue}', 'my-db-2.login.shop.localhost queue.login.shop.localhost'],
    ['createdb ${slug} ${stack}', 'createdb login shop--login'],
    ['$${port.api} $${slug}', '${port.api} ${slug}'],
  ])('in %s is filled in', (cmd, filled) => {
    expect(filledSpec(web({ cmd }), PORTS).cmd).toBe(filled);
  });

  it('is filled in only in the fields that say what a service runs with', () => {
    const given = web({
      cwd: '/srv/${slug}',
      ready: 'http://localhost:${port.api}/',
      env: [['API', '${url.api}']],
      labels: ['${slug}'],
    });
    expect(filledSpec(given, PORTS)).toMatchObject({
      cwd: '/srv/login',
      ready: 'http://localhost:3101/',
      env: [['API', 'http://localhost:3101']],
      labels: ['${slug}'],
    });
  });

  it('has the name of the project for a slug in the main working tree', () => {
    const main = spec({ name: 'shop--web', stack: 'shop', cmd: '${slug}-${host.web}' });
    expect(filledSpec(main, [{ name: 'shop--web', port: 1, protocol: 'http' }]).cmd).toBe(
      'shop-web.shop.localhost',
    );
  });

  it.each([
    ['${port.zz}', 'there is no service zz in the stack shop--login'],
    ['${url.queue}', 'queue has no port'],
  ])('without a value fails the start: %s', (cmd, why) => {
    expect(() => filledSpec(web({ cmd }), PORTS)).toThrow(why);
  });

  it('is left to the shell in a service without a stack', () => {
    const plain = spec({ cmd: 'echo ${slug} ${stack}' });
    expect(filledSpec(plain, [])).toBe(plain);
  });
});

it('each service of a stack has the addresses of the others', () => {
  expect(neighbourVariables(web(), PORTS)).toEqual([
    ['PORT_API', '3101'],
    ['URL_API', 'http://localhost:3101'],
    ['PORT_MY_DB_2', '3102'],
    ['URL_MY_DB_2', 'tcp://localhost:3102'],
  ]);
});
