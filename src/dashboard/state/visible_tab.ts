// Whether a person can see the tab. A hidden one reads nothing from the cloud.
import { signal } from '@preact/signals';

/** Whether the tab is visible. */
export const isTabVisible = signal(!document.hidden);

document.addEventListener('visibilitychange', () => {
  isTabVisible.value = !document.hidden;
});
