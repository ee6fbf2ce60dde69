// The answer of savings: docs/reference.md "Savings".
import { id } from './answer_fields.ts';
import { z } from './validation.ts';

export type Savings = z.infer<typeof Savings>;
export const Savings = z
  .object({
    month: z.string().describe('In UTC, such as 2026-11'),
    cluster_id: id,
    cluster: z.string().describe('Its name'),
    namespace: z.string(),
    pod_seconds: z.int().describe('Seconds, times the pods that slept'),
    cpu_request_core_seconds: z.int().describe('The same, times the CPU cores that a pod requests'),
    memory_request_byte_seconds: z.number().describe('The same, times the bytes that a pod requests'),
  })
  .meta({ id: 'Savings' });

export const SavingsList = z.array(Savings);
