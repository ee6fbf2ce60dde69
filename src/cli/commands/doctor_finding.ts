// What a check of `berth doctor` finds.
export interface DoctorFinding {
  state: 'ok' | 'warning' | 'wrong';
  about: string;
  /** How to fix it. */
  fix?: string;
}
