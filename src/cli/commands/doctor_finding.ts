// The result of a check of `berth doctor`.
export interface DoctorFinding {
  state: 'ok' | 'warning' | 'wrong';
  about: string;
  /** How to fix it. */
  fix?: string;
}
