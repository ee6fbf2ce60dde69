// What an agent may see and change with its token: docs/reference.md "Agent tokens".
import type { AgentLife } from '../../protocol/access_key.ts';
import { fail } from '../../protocol/errors.ts';
import type { EventType } from '../../protocol/events.ts';
import { isShortName, shortName } from '../../protocol/stacks.ts';
import type { SpecRow } from '../../protocol/views.ts';
import type { Failure } from '../../runtime/actor.ts';
import type { ServiceViews } from '../views/service_views.ts';

/** Events of clusters belong to no stack, so agents do not see them. */
const OF_STACKS = /^(?:service|agent|port)\./;

/** Selects the list entries that may be shown; null: all. */
export const specFilter = (reach: Reach | null): ((spec: SpecRow) => boolean) | null =>
  reach && ((spec) => reach.has(spec));

/** The reach of one run of an agent. For people there is none: null instead of a reach means everything. */
export class Reach {
  readonly agent: string;
  /** It reaches everything in this stack; null: everything that is in no stack. */
  readonly stack: string | null;
  private readonly run: string;
  private readonly views: ServiceViews;
  /** The service or agent that the request is about; null: it is about no single one. */
  private subject: string | null = null;

  constructor(views: ServiceViews, { name, run }: AgentLife) {
    this.views = views;
    this.agent = name;
    this.run = run;
    this.stack = views.spec(name)?.stack ?? null;
  }

  /**
   * Whether its process is running or being started, and still belongs to the same stack, as does what the
   * request is about.
   */
  get isCurrent(): boolean {
    if (this.subject !== null && !this.hasName(this.subject)) return false;
    const spec = this.views.spec(this.agent);
    if (!spec?.agent || spec.stack !== this.stack) return false;
    const state = this.views.state(this.agent);
    return (state?.process?.run ?? state?.launching) === this.run;
  }

  has({ stack }: Pick<SpecRow, 'stack'>): boolean {
    return stack === this.stack;
  }

  /** Like `has`, but also for a name that is not registered (any more). */
  hasName(name: string): boolean {
    const spec = this.views.spec(name);
    return spec ? this.has(spec) : this.isOwnName(name);
  }

  /** Whether a registration by this stack may have this name. */
  isOwnName(name: string): boolean {
    return this.stack === null ? isShortName(name) : shortName(name, this.stack) !== null;
  }

  /** Whether the group belongs to the stack and has no members from elsewhere. */
  hasGroup(group: string): boolean {
    return (
      (group === this.stack || this.isOwnName(group)) &&
      this.views.members(group).every((spec) => this.has(spec))
    );
  }

  hasEvent({ type, name }: { type: EventType; name: string }): boolean {
    return OF_STACKS.test(type) && this.hasName(name);
  }

  /** The failure for a request for `what`, such as `the service blog--web`. */
  refusal(what: string): Failure {
    const of = this.stack === null ? 'no stack' : `the stack ${this.stack}`;
    return fail('forbidden_owner', `${this.agent} is an agent of ${of}, and ${what} is not`);
  }

  /** Throws forbidden_owner for a name outside its reach. */
  assertName(name: string): void {
    if (!this.hasName(name)) throw this.refusal(name);
  }

  /** Like `assertName`, for what the whole request is about. */
  limitTo(name: string): void {
    this.assertName(name);
    this.subject = name;
  }

  /** Throws forbidden_owner for any other stack. */
  assertStack(stack: string): void {
    if (stack !== this.stack) throw this.refusal(stack);
  }
}
