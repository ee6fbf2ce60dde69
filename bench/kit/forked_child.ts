// A part of a benchmark that runs in a process of its own, so that its work is not measured.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PLAIN_ENVIRONMENT } from './daemon.ts';

export class ForkedChild {
  private readonly child: ChildProcess;
  private resolveNext: (message: unknown) => void = () => undefined;
  private rejectNext: (error: Error) => void = () => undefined;

  /** Forks the module with the URL `module`. */
  constructor(module: string, args: readonly string[]) {
    this.child = fork(fileURLToPath(module), args, { env: PLAIN_ENVIRONMENT });
    this.child.on('message', (message) => this.resolveNext(message));
    this.child.on('exit', (code) => this.rejectNext(new Error(`${args[0]} ended (${code})`)));
  }

  /** The next message of the child. Only one call may wait at a time. */
  next<M>(): Promise<M> {
    return new Promise((resolve, reject) => {
      this.resolveNext = (message) => resolve(message as M);
      this.rejectNext = reject;
    });
  }

  /** Sends `message` to the child and returns its answer. */
  ask<M>(message: number | readonly number[]): Promise<M> {
    const answer = this.next<M>();
    this.child.send(message);
    return answer;
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Closes the channel, after which the child exits. */
  leave(): void {
    if (this.child.connected) this.child.disconnect();
  }
}
