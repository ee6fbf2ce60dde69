// The answers of the operations of groups.
import { z } from '../adapters/zod.ts';
import { exitCode, name, status } from './answer_fields.ts';
import { StartResult } from './services_shapes.ts';

export type Group = z.infer<typeof Group>;
export const Group = z
  .object({ name, services: z.int().min(1), running: z.int().min(0) })
  .meta({ id: 'Group' });

export const GroupList = z.object({ groups: z.array(Group) });

export type GroupStarted = z.infer<typeof GroupStarted>;
export const GroupStarted = z.object({ name, services: z.array(StartResult) });

export type GroupStopped = z.infer<typeof GroupStopped>;
export const GroupStopped = z.object({ name, services: z.array(z.object({ name, status, exitCode })) });
