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
export class DependencyOrder {
  /** Who may go when this one is done. */
  private readonly dependents = new Map<string, string[]>();
  /** How many each one still waits for. */
  private readonly pendingCounts = new Map<string, number>();

  constructor(members: readonly Member[], reverse = false) {
    for (const { name } of members) this.pendingCounts.set(name, 0);
    for (const { name, dependsOn } of members) {
      for (const other of new Set(dependsOn)) {
        if (other === name || !this.pendingCounts.has(other)) continue;
        const [first, second] = reverse ? [name, other] : [other, name];
        const next = this.dependents.get(first);
        if (next) next.push(second);
        else this.dependents.set(first, [second]);
        this.pendingCounts.set(second, (this.pendingCounts.get(second) ?? 0) + 1);
      }
    }
  }

  /** Those that wait for nobody. Each name is given once, by `free` or by `done`. */
  takeReady(): string[] {
    const names = [...this.pendingCounts].filter(([, count]) => count === 0).map(([name]) => name);
    for (const name of names) this.pendingCounts.delete(name);
    return names;
  }

  /** `name` is done: those that waited for it last of all. */
  complete(name: string): string[] {
    return (this.dependents.get(name) ?? []).filter((next) => {
      const count = this.pendingCounts.get(next);
      if (count === undefined) return false;
      this.pendingCounts.set(next, count - 1);
      return count === 1 && this.pendingCounts.delete(next);
    });
  }

  /** All that have not been given yet, and from now on never are. */
  takeRemaining(): string[] {
    const names = [...this.pendingCounts.keys()];
    this.pendingCounts.clear();
    return names;
  }
}

/**
 * Runs `act` on every member as soon as those before it are done. After a failure nothing new begins; what is under way
 * is awaited, and then the first error is thrown. `halted` can end it in the same way without an error.
 */
export async function walkInOrder(
  order: DependencyOrder,
  act: (name: string) => Promise<void>,
  isHalted: () => boolean = () => false,
): Promise<void> {
  const errors: unknown[] = [];
  const visit = async (name: string): Promise<void> => {
    if (errors.length > 0 || isHalted()) return;
    try {
      await act(name);
    } catch (error) {
      errors.push(error);
      return;
    }
    await Promise.all(order.complete(name).map(visit));
  };
  await Promise.all(order.takeReady().map(visit));
  if (errors.length === 0) await Promise.all(order.takeRemaining().map(visit));
  if (errors.length > 0) throw errors[0];
}
