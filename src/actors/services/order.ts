// In which order the members of a group go, and how they are walked in it:
// docs/reference.md "Start of a group". Knows no actor.

export interface Member {
  name: string;
  dependsOn: string[];
}

/**
 * Members in dependsOn order, or with `reverse` in the exact reverse. Only dependences within the members count; of a
 * cycle, which no registration lets in, nothing is ever free, and `rest` has it.
 */
export class Order {
  /** Who may go when this one is done. */
  private readonly after = new Map<string, string[]>();
  /** How many each one still waits for. */
  private readonly waits = new Map<string, number>();

  constructor(members: readonly Member[], reverse = false) {
    for (const { name } of members) this.waits.set(name, 0);
    for (const { name, dependsOn } of members) {
      for (const other of new Set(dependsOn)) {
        if (other === name || !this.waits.has(other)) continue;
        const [first, second] = reverse ? [name, other] : [other, name];
        const next = this.after.get(first);
        if (next) next.push(second);
        else this.after.set(first, [second]);
        this.waits.set(second, (this.waits.get(second) ?? 0) + 1);
      }
    }
  }

  /** Those that wait for nobody. Each name is given once, by `free` or by `done`. */
  free(): string[] {
    const names = [...this.waits].filter(([, count]) => count === 0).map(([name]) => name);
    for (const name of names) this.waits.delete(name);
    return names;
  }

  /** `name` is done: those that waited for it last of all. */
  done(name: string): string[] {
    return (this.after.get(name) ?? []).filter((next) => {
      const count = this.waits.get(next);
      if (count === undefined) return false;
      this.waits.set(next, count - 1);
      return count === 1 && this.waits.delete(next);
    });
  }

  /** All that have not been given yet, and from now on never are. */
  rest(): string[] {
    const names = [...this.waits.keys()];
    this.waits.clear();
    return names;
  }
}

/**
 * Runs `act` on every member as soon as those before it are done. After a failure nothing new begins; what is under way
 * is awaited, and then the first error is thrown. `halted` can end it in the same way without an error.
 */
export async function walk(
  order: Order,
  act: (name: string) => Promise<void>,
  halted: () => boolean = () => false,
): Promise<void> {
  const errors: unknown[] = [];
  const visit = async (name: string): Promise<void> => {
    if (errors.length > 0 || halted()) return;
    try {
      await act(name);
    } catch (error) {
      errors.push(error);
      return;
    }
    await Promise.all(order.done(name).map(visit));
  };
  await Promise.all(order.free().map(visit));
  if (errors.length === 0) await Promise.all(order.rest().map(visit));
  if (errors.length > 0) throw errors[0];
}
