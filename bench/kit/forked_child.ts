// A part of a bench in a process of its own, so that its work is not measured with the rest.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PLAIN_ENVIRONMENT } from './daemon.ts';

export class ForkedChild {
  private readonly child: ChildProcess;
  private resolveNext: (message: unknown) => void = () => undefined;
  private rejectNext: (error: Error) => void = () => undefined;

  /** Forks the module of the URL `module`. */
  constructor(module: string, args: readonly string[]) {
    this.child = fork(fileURLToPath(module), args, { env: PLAIN_ENVIRONMENT });
    this.child.on('message', (message) => this.resolveNext(message));
    this.child.on('exit', (code) => this.rejectNext(new Error(`${args[0]} ended (${code})`)));
  }

  /** Its next message; one at a time. */
  next<M>(): Promise<M> {
    return new Promise((resolve, reject) => {
      this.resolveNext = (message) => resolve(message as M);
      this.rejectNext = reject;
    });
  }

  /** The message with which it answers `message`. */
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
