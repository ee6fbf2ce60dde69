// The modules of shapes, by resource. Each loads at its first use.

export const SHAPES = {
  services: () => import('./services_shapes.ts'),
  groups: () => import('./groups_shapes.ts'),
  stacks: () => import('./stacks_shapes.ts'),
  events: () => import('./events_shapes.ts'),
  logs: () => import('./logs_shapes.ts'),
  agents: () => import('./agents_shapes.ts'),
  commands: () => import('./commands_shapes.ts'),
  access: () => import('./access_shapes.ts'),
  system: () => import('./system_shapes.ts'),
  clusters: () => import('./clusters_shapes.ts'),
  workloads: () => import('./workloads_shapes.ts'),
  tethers: () => import('./tethers_shapes.ts'),
  relay: () => import('./relay_shapes.ts'),
  policies: () => import('./policies_shapes.ts'),
  savings: () => import('./savings_shapes.ts'),
  principals: () => import('./principals_shapes.ts'),
  cloudEvents: () => import('./cloud_events_shapes.ts'),
  mcp: () => import('./mcp_shapes.ts'),
};

/** Operations refer to shapes by the names of these modules' exports. */
export type ResourceShapes = { [R in keyof typeof SHAPES]: Awaited<ReturnType<(typeof SHAPES)[R]>> };
