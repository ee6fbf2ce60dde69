import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressCheck } from '../../src/adapters/address_rule.ts';

const check = (allow: string | string[], apiOnLoopback = true) => addressCheck({ allow, apiOnLoopback });

/** The host of a URL as the WHATWG parser returns it. */
const hostOf = (text: string): string => new URL(`https://${text}`).hostname.replace(/^\[|\]$/g, '');

const NEVER = [
  '0.0.0.0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.0.1',
  '100.100.100.200',
  '224.0.0.1',
  '239.255.255.255',
  '255.255.255.255',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fd00:ec2::254',
  'ff02::1',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::ffff:0:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '::169.254.169.254',
  '64:ff9b::100.100.100.200',
];
const LOOPBACK = [
  '127.0.0.1',
  '127.8.9.10',
  '::1',
  '::ffff:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '2002:7f00:1::',
];
const PRIVATE = [
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  'fc00::1',
  'fdab::1',
  '::ffff:10.0.0.1',
  '240.0.0.1',
  '2002:c0a8:101::',
];
const PUBLIC = [
  '8.8.8.8',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2002:808:808::',
  '169.253.255.255',
];

describe('the address policy', () => {
  it.each(NEVER)('never allows %s, whatever the setting', (ip) => {
    for (const rule of ['any', 'auto', 'public', ['0.0.0.0/0', '::/0']])
      expect(check(rule)(ip)).toBe('is an address that is never dialled');
  });

  it('"any" allows all other addresses', () => {
    for (const ip of [...LOOPBACK, ...PRIVATE, ...PUBLIC]) expect(check('any')(ip)).toBeNull();
  });

  it('"auto" allows loopback only while the API itself listens there, and private addresses always', () => {
    for (const ip of [...LOOPBACK, ...PRIVATE, ...PUBLIC]) expect(check('auto', true)(ip)).toBeNull();
    for (const ip of LOOPBACK) expect(check('auto', false)(ip)).toContain('loopback');
    for (const ip of [...PRIVATE, ...PUBLIC]) expect(check('auto', false)(ip)).toBeNull();
  });

  it('"public" allows neither loopback nor private addresses', () => {
    for (const ip of LOOPBACK) expect(check('public')(ip)).toContain('loopback');
    for (const ip of PRIVATE) expect(check('public')(ip)).toContain('private');
    for (const ip of PUBLIC) expect(check('public')(ip)).toBeNull();
  });

  it('a list allows its entries, also for IPv6 forms of an IPv4 address', () => {
    const allowed = check(['10.0.0.0/8', '192.168.7.128/25', 'fdab:cd00::/24']);
    for (const ip of ['10.9.9.9', '192.168.7.200', 'fdab:cdff::1', '::ffff:10.0.0.1', '2002:a00:1::'])
      expect(allowed(ip)).toBeNull();
    for (const ip of ['11.0.0.1', '192.168.7.127', 'fdab:ce00::1', '127.0.0.1', '8.8.8.8'])
      expect(allowed(ip)).toContain('not in the list');
  });

  it('recognizes every spelling of an address in a URL', () => {
    for (const spelling of [
      '0xa9fea9fe',
      '2852039166',
      '0251.0376.0251.0376',
      '169.254.43518',
      '0xA9.254.0xA9FE',
      '[::ffff:169.254.169.254]',
      '[0:0:0:0:0:ffff:a9fe:a9fe]',
      '１６９.254.169.254',
      '169。254。169。254',
    ])
      expect(check('any')(hostOf(spelling))).toBe('is an address that is never dialled');
    for (const spelling of ['0x7f.1', '2130706433', '127.1', '017700000001', '[::1]', '[0:0::0:1]'])
      expect(check('public')(hostOf(spelling))).toContain('loopback');
  });

  it('gives an IPv4 address the same result in every IPv6 form that contains it', () => {
    const forms = (ip: string): string[] => {
      const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      return [`::ffff:${ip}`, `::ffff:${hex}`, `64:ff9b::${hex}`, `2002:${hex}::`, `2002:${hex}:1::5`];
    };
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        for (const rule of ['any', 'public', 'auto'])
          for (const form of forms(ip)) expect(check(rule, false)(form)).toBe(check(rule, false)(ip));
      }),
    );
  });
});
