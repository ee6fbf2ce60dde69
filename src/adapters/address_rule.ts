// The addresses that an API server may have: docs/reference.md "API server addresses". Pure: every address is
// checked in cluster_dialer.ts before a connection.
import { isIP } from 'node:net';

/** `cloud.allow_addresses`, and whether the cloud API itself is on loopback ("auto" depends on it). */
export interface AddressRule {
  allow: string | readonly string[];
  apiOnLoopback: boolean;
}

/** 4 or 16 bytes. */
type AddressBytes = readonly number[];
type Subnet = readonly [bytes: AddressBytes, bits: number];

function bytes4(ip: string): AddressBytes {
  return ip.split('.').map(Number);
}

function bytes6(ip: string): AddressBytes {
  const [text = ''] = ip.split('%');
  const [dotted = ''] = /(?:\d+\.){3}\d+$/.exec(text) ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = bytes4(dotted);
  const low = dotted === '' ? '' : `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  const groups = text.slice(0, text.length - dotted.length) + low;
  const [head = '', tail] = groups.split('::');
  const words = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16));
  const front = words(head);
  const back = words(tail ?? '');
  const middle = new Array<number>(8 - front.length - back.length).fill(0);
  return [...front, ...middle, ...back].flatMap((word) => [word >> 8, word & 255]);
}

const addressBytes = (ip: string): AddressBytes => (isIP(ip) === 4 ? bytes4(ip) : bytes6(ip));

function subnet(cidr: string): Subnet {
  const [ip = '', bits = ''] = cidr.split('/');
  return [addressBytes(ip), Number(bits)];
}

function isInSubnet(address: AddressBytes, [base, bits]: Subnet): boolean {
  if (address.length !== base.length) return false;
  const whole = bits >> 3;
  for (let index = 0; index < whole; index += 1) if (address[index] !== base[index]) return false;
  const rest = 8 - (bits & 7);
  return rest === 8 || (address[whole] ?? 0) >> rest === (base[whole] ?? 0) >> rest;
}

const subnets = (...cidrs: string[]): readonly Subnet[] => cidrs.map(subnet);

/** Metadata services, this-network, link-local, multicast, broadcast and the unspecified address. */
const NEVER_DIALLED = subnets(
  '0.0.0.0/8',
  '169.254.0.0/16',
  '100.100.100.200/32',
  '224.0.0.0/4',
  '255.255.255.255/32',
  '::/128',
  'fe80::/10',
  'fd00:ec2::254/128',
  'ff00::/8',
);
const LOOPBACK_SUBNETS = subnets('127.0.0.0/8', '::1/128');
/** Addresses outside of the public internet. */
const PRIVATE_SUBNETS = subnets(
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
  '100::/64',
  '2001:db8::/32',
  'fc00::/7',
  'fec0::/10',
);
/**
 * IPv6 forms that carry an IPv4 address, and the byte where it begins: mapped, translated, NAT64 (two), 6to4,
 * and the old compatible form.
 */
const IPV4_EMBEDDINGS: readonly (readonly [net: Subnet, at: number])[] = [
  [subnet('::ffff:0:0/96'), 12],
  [subnet('::ffff:0:0:0/96'), 12],
  [subnet('64:ff9b::/96'), 12],
  [subnet('64:ff9b:1::/48'), 12],
  [subnet('2002::/16'), 2],
  [subnet('::/96'), 12],
];

/** The embedded IPv4 address if the form carries one, otherwise the address itself. */
function effectiveAddress(address: AddressBytes): AddressBytes {
  const isOwn = [...NEVER_DIALLED, ...LOOPBACK_SUBNETS].some((net) => isInSubnet(address, net));
  const carrier = isOwn ? undefined : IPV4_EMBEDDINGS.find(([net]) => isInSubnet(address, net));
  return carrier ? address.slice(carrier[1], carrier[1] + 4) : address;
}

/** Why the address must not be dialled; null: it may be. */
type AddressPolicy = (address: AddressBytes) => string | null;

const NAMED_POLICIES: Readonly<Record<string, (rule: AddressRule) => AddressPolicy>> = {
  any: () => () => null,
  public: () => (address) => {
    if (LOOPBACK_SUBNETS.some((net) => isInSubnet(address, net))) return 'is a loopback address';
    return PRIVATE_SUBNETS.some((net) => isInSubnet(address, net)) ? 'is a private address' : null;
  },
  auto: (rule) => (address) =>
    !rule.apiOnLoopback && LOOPBACK_SUBNETS.some((net) => isInSubnet(address, net))
      ? 'is a loopback address'
      : null,
};

function policyOf(rule: AddressRule): AddressPolicy {
  if (typeof rule.allow === 'string') {
    const named = Object.hasOwn(NAMED_POLICIES, rule.allow) ? NAMED_POLICIES[rule.allow] : undefined;
    if (named) return named(rule);
  }
  const allowed = [rule.allow].flat().map(subnet);
  return (address) =>
    allowed.some((net) => isInSubnet(address, net)) ? null : 'is not in the list of allowed networks';
}

/**
 * Creates the check for a rule. It returns why an IP address (as given by a resolver) must not be dialled, or
 * null. Forms that carry an IPv4 address are judged by that address.
 */
export function addressCheck(rule: AddressRule): (ip: string) => string | null {
  const refusalOf = policyOf(rule);
  return (ip) => {
    if (isIP(ip) === 0) return 'is no IP address';
    const address = effectiveAddress(addressBytes(ip));
    if (NEVER_DIALLED.some((net) => isInSubnet(address, net))) return 'is an address that is never dialled';
    const reason = refusalOf(address);
    return reason === null ? null : `${reason}, which cloud.allow_addresses does not allow`;
  };
}
