// Many label selectors at once: an index by label, so that a workload costs as much as there are requirements
// that its labels meet or break, and not as much as there are requirements. Pure.
import { type LabelText, labelsIn, requirementsIn } from './labels.ts';

/** The selectors, as their places among all, that a label concerns. */
interface KeyRules {
  /** Met by any value, and broken by any value. */
  readonly met: number[];
  readonly broken: number[];
  readonly metBy: Map<string, number[]>;
  readonly brokenBy: Map<string, number[]>;
}

/** The most texts whose answer is remembered. */
const MAX_KNOWN = 10_000;
/** More than the keys that a selector can require. */
const NEVER = 1_000_000;

const NONE: readonly number[] = [];

function addTo(lists: Map<string, number[]>, value: string, selector: number): void {
  const list = lists.get(value);
  if (list) list.push(selector);
  else lists.set(value, [selector]);
}

export class SelectorIndex {
  private readonly rules = new Map<string, KeyRules>();
  /** By selector: the number of keys that must be there. */
  private readonly needed: number[] = [];
  private readonly known = new Map<LabelText, boolean>();
  /** How often a label has met or broken a requirement so far. */
  applied = 0;

  /** Throws invalid_spec. */
  constructor(selectors: Iterable<string>) {
    for (const selector of selectors) this.add(selector);
  }

  /** Whether one of the selectors matches. */
  matches(text: LabelText): boolean {
    const known = this.known.get(text);
    if (known !== undefined) return known;
    if (this.known.size >= MAX_KNOWN) this.known.clear();
    const isMatch = this.look(text);
    this.known.set(text, isMatch);
    return isMatch;
  }

  private add(text: string): void {
    const selector = this.needed.length;
    /** The values that all requirements of a key allow; null: any. */
    const allowed = new Map<string, ReadonlySet<string> | null>();
    for (const { key, values, isNegated } of requirementsIn(text)) {
      const rules = this.rulesOf(key);
      if (isNegated) {
        if (!values) rules.broken.push(selector);
        for (const one of values ?? []) addTo(rules.brokenBy, one, selector);
        continue;
      }
      const before = allowed.get(key) ?? null;
      allowed.set(key, values ? new Set(values.filter((one) => before?.has(one) ?? true)) : before);
    }
    for (const [key, values] of allowed) {
      const rules = this.rulesOf(key);
      if (!values) rules.met.push(selector);
      for (const one of values ?? []) addTo(rules.metBy, one, selector);
    }
    this.needed.push(allowed.size);
  }

  private rulesOf(key: string): KeyRules {
    const rules = this.rules.get(key) ?? { met: [], broken: [], metBy: new Map(), brokenBy: new Map() };
    this.rules.set(key, rules);
    return rules;
  }

  private look(text: LabelText): boolean {
    const missing = Int32Array.from(this.needed);
    const subtract = (selectors: readonly number[], count: number): void => {
      this.applied += selectors.length;
      for (const selector of selectors) missing[selector] = (missing[selector] ?? 0) - count;
    };
    for (const [key, value] of Object.entries(labelsIn(text))) {
      const rules = this.rules.get(key);
      if (!rules) continue;
      subtract(rules.met, 1);
      subtract(rules.metBy.get(value) ?? NONE, 1);
      subtract(rules.broken, NEVER);
      subtract(rules.brokenBy.get(value) ?? NONE, NEVER);
    }
    return missing.includes(0);
  }
}
