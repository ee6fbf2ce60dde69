// Every operation of the API, by resource, in the order of the API's document.
import { access } from './access.ts';
import { agents } from './agents.ts';
import { cloudEvents } from './cloud_events.ts';
import { clusters } from './clusters.ts';
import { commands } from './commands.ts';
import { events } from './events.ts';
import { groups } from './groups.ts';
import { logs } from './logs.ts';
import { mcp } from './mcp.ts';
import type { Operation } from './operation.ts';
import { policies } from './policies.ts';
import { principals } from './principals.ts';
import { relay } from './relay.ts';
import { savings } from './savings.ts';
import { services } from './services.ts';
import { stacks } from './stacks.ts';
import { system } from './system.ts';
import { tethers } from './tethers.ts';
import { workloads } from './workloads.ts';

export const OPERATIONS = {
  services,
  groups,
  stacks,
  events,
  logs,
  agents,
  commands,
  access,
  system,
  clusters,
  workloads,
  tethers,
  relay,
  policies,
  savings,
  principals,
  cloudEvents,
  mcp,
};

/** All operations, without their resources. */
export const ALL_OPERATIONS: readonly Operation[] = Object.values(OPERATIONS).flatMap((operations) =>
  Object.values<Operation>(operations),
);
