// The objects of the Kubernetes API as they come over the wire. The shapes are those of @kubernetes/client-node, taken as
// types alone: its generated classes cost 400 ms and 70 MiB to load, and its loader, watch and port-forward are not safe
// with clusters of strangers.
import type { V1Deployment, V1StatefulSet } from '@kubernetes/client-node';

export type {
  V1ContainerStatus,
  V1HorizontalPodAutoscaler,
  V1LabelSelectorRequirement,
  V1ManagedFieldsEntry,
  V1OwnerReference,
  V1Pod,
  V1PodCondition,
  V1SelfSubjectAccessReview,
  V1Status,
  VersionInfo,
} from '@kubernetes/client-node';

/** What is read of either kind has the same names. */
export type KubeWorkload = V1Deployment & V1StatefulSet;

/**
 * What a field holds is unknown until it has been looked at: the server may be anybody's. Only the names are certain, so
 * that a misspelt one does not compile. Reading a property of a string or number where an object should be gives undefined.
 */
export type Wire<T> = T extends string | number | boolean | Date | readonly unknown[] | undefined | null
  ? unknown
  : { readonly [K in keyof T]?: Wire<NonNullable<T[K]>> } | null | undefined;

/** `value` as the wire form of T: every leaf of that is unknown, so any object is one. */
export const wire = <T extends object>(value: unknown): Wire<T> | undefined =>
  typeof value === 'object' && value !== null ? (value as Wire<T>) : undefined;
