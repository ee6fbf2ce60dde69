// Explains the state of a service in plain English, for `explain` and for the hints of failed starts:
// docs/reference.md "Explain". Pure: facts in, text out.
import { type ErrorCode, fail } from '../../protocol/errors.ts';
import type {
  LastCheck,
  LastEnd,
  ServiceExplanation,
  ServiceSpec,
  ServiceStatus,
} from '../../protocol/service.ts';
import type { WatchState } from '../../protocol/watcher.ts';
import type { Failure } from '../../runtime/actor.ts';
import {
  aboutCheck,
  aboutDoor,
  aboutDroppedOutput,
  aboutEnd,
  aboutFailedWake,
  aboutForeignHolder,
  aboutPort,
  aboutWatch,
  awaitedCheck,
  describeEnd,
  humanDuration,
  joinSentences,
  logText,
} from './explain_sentences.ts';
import type { LiveCheck } from './live_check.ts';
import { completeRestartRule } from './restart_policy.ts';
import type { FailedWake } from './service_door_options.ts';
import type { In, LifecycleState } from './state.ts';

/** The facts an explanation is made from. */
export interface ExplanationFacts {
  spec: ServiceSpec;
  status: ServiceStatus;
  state: LifecycleState;
  end: LastEnd | null;
  /** The process that listens on the port of the service now. */
  portHolder: string | null;
  /** A process that listens there without belonging to the service's run. */
  foreignHolder: string | null;
  /** The process that has the port of its door instead. */
  doorPortHolder: string | null;
  /** Its port accepts connections, whether it has a process or not. */
  isDoorOpen: boolean;
  /** The stop under way is followed by a start. */
  startFollows: boolean;
  failedWake: FailedWake | null;
  /** What is watched for it; null if nothing. */
  watching: WatchState | null;
  lastLines: string[];
  /** The PATH of the service; null: it has none. */
  path: string | null;
  /** Bytes of output lost to a full disk since the process host started. */
  droppedBytes: number;
  /** Epoch milliseconds. */
  now: number;
}

interface ExplanationText {
  reason: string;
  waitingFor?: string;
  next: string;
}

const aboutPast = (end: LastEnd): string =>
  end.completed
    ? `It has completed in ${humanDuration(end.completed.ms)}.`
    : `Its last process ${describeEnd(end)}.`;

/** How the process before ended, if it crashed: the restart policy may have started this one. */
const aboutCrashBefore = ({ end, now }: ExplanationFacts): string | null =>
  end?.status === 'crashed'
    ? `The process before it ${describeEnd(end)}, ${humanDuration(now - end.at)} ago.`
    : null;

const IDLE_NEXT = {
  service: 'It stays as it is until it is started.',
  task: 'It runs when it is started; `berth up` runs it once for what it is made of.',
  scheduled: 'It runs by its schedule, and when it is started.',
} as const;

/** Says why no restart follows a crash. */
function aboutPolicy({ restart }: ServiceSpec, { exhausted }: LastEnd): string | null {
  const { max, policy, withinMs } = completeRestartRule(restart);
  if (exhausted) {
    const period = withinMs === null ? 'since it was started' : `within ${humanDuration(withinMs)}`;
    return `It was restarted ${max} times ${period}, and its restart policy allows no more.`;
  }
  return policy === 'no' ? 'Its restart policy is "no".' : null;
}

/** Describes the last probe of a live-check if it failed. */
function aboutLive(live: LiveCheck | null, now: number): string | null {
  const check = live?.last() ?? null;
  return check?.error ? `Its live-check fails. ${aboutCheck(check, now)}` : null;
}

function whyStopping({ late, fault }: In<'stopping'>, now: number): string {
  if (late) return 'Its ready-check did not pass in time, so it is being stopped.';
  if (!fault) return 'It was asked to stop.';
  const why = fault.cause === 'memory' ? 'It uses more memory than its limit' : 'Its live-check failed';
  return joinSentences(`${why}, so it is being ended.`, aboutCheck(fault.check, now));
}

const ASLEEP = 'It was put to sleep.';

function whenIdle(facts: ExplanationFacts): ExplanationText {
  const { spec, status, end, portHolder, isDoorOpen, state, path } = facts;
  const trouble = state.phase === 'idle' ? state.trouble : null;
  const knock = `The next connection to port ${spec.port} starts it.`;
  const isAsleep = status === 'sleeping';
  if (isDoorOpen && isAsleep)
    return { reason: joinSentences(ASLEEP, aboutFailedWake(facts.failedWake, facts.now)), next: knock };
  const past = end ? aboutPast(end) : 'It has not been started yet.';
  const why = trouble ? `The last start made no process: ${trouble}.` : past;
  const reason = isAsleep ? ASLEEP : why;
  if (portHolder !== null)
    return {
      reason: joinSentences(reason, `Port ${spec.port} is held by ${portHolder}.`),
      next: 'Stop what holds the port or register another port; a start is refused until then.',
    };
  const crashed = end?.status === 'crashed' && trouble === null;
  const idle = IDLE_NEXT[spec.schedule ? 'scheduled' : (spec.kind ?? 'service')];
  const next = isDoorOpen ? knock : idle;
  return {
    reason: joinSentences(
      reason,
      crashed && aboutEnd(end, path),
      crashed && aboutPolicy(spec, end),
      aboutFailedWake(facts.failedWake, facts.now),
    ),
    next: trouble ? 'Correct that and start it again.' : next,
  };
}

function whenChecking({ run, check }: In<'checking'>, facts: ExplanationFacts): ExplanationText {
  const { portHolder, foreignHolder, doorPortHolder, now } = facts;
  const { ready, port } = run.metadata;
  const left = check.leftMs();
  const otherHolder = foreignHolder ?? doorPortHolder;
  return {
    reason: joinSentences(
      `Its process ${run.pid} has been up for ${humanDuration(now - run.startedAt)} ` +
        'and has not passed its ready-check yet.',
      aboutCheck(check.last(), now),
      otherHolder === null && ready !== null && aboutPort(run.metadata, facts.spec.env, portHolder),
      aboutForeignHolder(run, foreignHolder),
      aboutDoor(run, doorPortHolder),
      aboutCrashBefore(facts),
    ),
    waitingFor: foreignHolder === null ? awaitedCheck(ready, port) : `${foreignHolder} to leave port ${port}`,
    next:
      left === null
        ? 'It has no deadline: it is asked again until it answers or ends.'
        : `It is stopped in ${humanDuration(left)} if the check has not passed by then.`,
  };
}

const RUNNING_NEXT = 'If it ends it stays down.';
const TASK_NEXT = 'It has completed when its process ends with exit code 0.';

function whenRunning({ run, live }: In<'running'>, facts: ExplanationFacts): ExplanationText {
  const { spec, foreignHolder, doorPortHolder, now } = facts;
  const reason = joinSentences(
    `Its process ${run.pid} has been up for ${humanDuration(now - run.startedAt)}.`,
    aboutLive(live, now),
    aboutForeignHolder(run, foreignHolder),
    aboutDoor(run, doorPortHolder),
    aboutCrashBefore(facts),
  );
  if (run.metadata.task) return { reason, waitingFor: 'the end of its process', next: TASK_NEXT };
  const { policy } = completeRestartRule(spec.restart);
  return { reason, next: policy === 'no' ? RUNNING_NEXT : `Its restart policy is "${policy}".` };
}

function explanationText(facts: ExplanationFacts): ExplanationText {
  const { state, spec, end, now, startFollows } = facts;
  switch (state.phase) {
    case 'lost':
      return {
        reason: 'The process host, which owns all processes, has not said yet what it has of this service.',
        waitingFor: 'the process host',
        next: 'It is asked again until it answers; requests are refused with daemon_busy meanwhile.',
      };
    case 'idle':
      return whenIdle(facts);
    case 'waiting':
      return {
        reason: joinSentences(
          state.trouble ? `The last restart made no process: ${state.trouble}.` : null,
          !state.trouble && end ? `Its last process ${describeEnd(end)}.` : null,
          `Its restart policy is "${completeRestartRule(spec.restart).policy}".`,
        ),
        waitingFor:
          `restart number ${state.backoff.attempt} in a row, ` +
          `in ${humanDuration(state.backoff.nextAt - now)}`,
        next: 'It is started again then; a start begins at once, a stop cancels it.',
      };
    case 'launching':
      return {
        reason: 'Its process is being made.',
        waitingFor: 'the process host',
        next: 'Its ready-check follows.',
      };
    case 'checking':
      return whenChecking(state, facts);
    case 'running':
      return whenRunning(state, facts);
    case 'stopping':
      return {
        reason: whyStopping(state, now),
        waitingFor: 'all processes of its tree to end and its port to be free',
        next: joinSentences(
          `What is left after a grace period of ${humanDuration(state.graceMs)} is killed.`,
          startFollows && 'Then it is started again.',
        ),
      };
    case 'ended':
      return {
        reason: state.end.completed ? aboutPast(state.end) : `Its process ${describeEnd(state.end)}.`,
        waitingFor: 'the end to be written to disk',
        next: state.backoff
          ? `It is started again in ${humanDuration(state.backoff.nextAt - now)}.`
          : 'It stays down.',
      };
  }
}

function lastCheckOf(state: LifecycleState): LastCheck | null {
  switch (state.phase) {
    case 'checking':
      return state.check.last();
    case 'running':
      return state.live?.last() ?? null;
    case 'stopping':
      return state.late?.check ?? state.fault?.check ?? null;
    default:
      return null;
  }
}

/** The answer of GET /v1/services/{name}/explain. */
export function explainService(facts: ExplanationFacts): ServiceExplanation {
  const { state, end } = facts;
  const { reason, waitingFor, next } = explanationText(facts);
  return {
    status: facts.status,
    reason: joinSentences(reason, aboutDroppedOutput(facts.droppedBytes), aboutWatch(facts.watching)),
    waitingFor: waitingFor ?? null,
    lastCheck: lastCheckOf(state),
    portHolder: facts.portHolder,
    backoff: state.phase === 'waiting' || state.phase === 'ended' ? state.backoff : null,
    exit: end && {
      exitCode: end.exitCode,
      signal: end.signal,
      at: end.at,
      ...(end.cause && { cause: end.cause }),
    },
    watching: facts.watching,
    lastLines: facts.lastLines,
    next,
  };
}

/** The error for a start whose run ended before it was ready. */
export async function startFailure(
  name: string,
  { run, end, how, backoff }: In<'ended'>,
  {
    env,
    lastLines,
    path,
    now,
  }: Pick<ExplanationFacts, 'lastLines' | 'path' | 'now'> & Pick<ServiceSpec, 'env'>,
): Promise<Failure> {
  const again =
    backoff && `It is started again in ${humanDuration(backoff.nextAt - now)} by its restart policy.`;
  const isHostLost = end.exitUnknown && !how.stopped;
  const say = (code: ErrorCode, message: string, ...facts: (string | null)[]): Failure =>
    fail(code, message, { hint: joinSentences(...facts), ...(isHostLost && { isHostLost }) });
  if (how.late) {
    const { foreignHolder } = how.late;
    const why = foreignHolder === null ? '' : `: ${foreignHolder} listens on its port ${run.metadata.port}`;
    return say(
      'ready_timeout',
      `${name} was not ready within ${run.timeoutMs ?? 0} ms and has been stopped${why}`,
      aboutCheck(how.late.check, now),
      aboutPort(run.metadata, env, await how.late.holder),
      again,
      logText(lastLines),
    );
  }
  const { task } = run.metadata;
  if (how.stopped && how.fault === null)
    return say(
      'start_failed',
      `${name} was stopped before it ${task ? 'had completed' : 'was ready'}`,
      'Somebody asked for the stop; start it again.',
    );
  return say(
    'start_failed',
    `${name} ${describeEnd(end)}${task ? '' : ' before it was ready'}`,
    aboutEnd(end, path),
    again,
    logText(lastLines),
  );
}
