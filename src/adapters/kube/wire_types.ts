// The objects of the Kubernetes API as they arrive. @kubernetes/client-node is used only for its types: its
// generated classes cost 400 ms and 70 MiB to load, and its loader, watch and port-forward are not safe with
// untrusted clusters.
import type { V1Deployment, V1StatefulSet } from '@kubernetes/client-node';

export type {
  CoreV1Event,
  V1Container,
  V1ContainerStatus,
  V1DeploymentCondition,
  V1HorizontalPodAutoscaler,
  V1LabelSelectorRequirement,
  V1ManagedFieldsEntry,
  V1Namespace,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1PodCondition,
  V1PodSpec,
  V1ReplicaSet,
  V1ResourceRequirements,
  V1ResourceRule,
  V1SelfSubjectAccessReview,
  V1SelfSubjectRulesReview,
  V1Status,
  VersionInfo,
} from '@kubernetes/client-node';

/** The fields used have the same names in both kinds. */
export type KubeWorkload = V1Deployment & V1StatefulSet;

/**
 * T from an untrusted server. The value of a field is unknown until it is checked; only the names are
 * certain, so a misspelt one does not compile. A property read from a string or number instead of an object
 * is undefined.
 */
export type Wire<T> = T extends string | number | boolean | Date | readonly unknown[] | undefined | null
  ? unknown
  : { readonly [K in keyof T]?: Wire<NonNullable<T[K]>> } | null | undefined;

/** `value` as the wire form of T. Every object has that form, because all its fields are unknown. */
export const wire = <T extends object>(value: unknown): Wire<T> | undefined =>
  typeof value === 'object' && value !== null ? (value as Wire<T>) : undefined;
