// The answers of the operations of groups.
import { z } from '../adapters/zod.ts';
import { exitCode, nameShape, status } from './answer_fields.ts';
import { SleepResult, StartResult } from './services_shapes.ts';

export type Group = z.infer<typeof Group>;
export const Group = z
  .object({ name: nameShape, services: z.int().min(1), running: z.int().min(0) })
  .meta({ id: 'Group' });

export const GroupList = z.object({ groups: z.array(Group) });

export type GroupStarted = z.infer<typeof GroupStarted>;
export const GroupStarted = z.object({ name: nameShape, services: z.array(StartResult) });

export type GroupSlept = z.infer<typeof GroupSlept>;
export const GroupSlept = z.object({ name: nameShape, services: z.array(SleepResult) });

export type GroupStopped = z.infer<typeof GroupStopped>;
export const GroupStopped = z.object({
  name: nameShape,
  services: z.array(z.object({ name: nameShape, status, exitCode })),
});
