// Whether the page is as narrow as a phone: one column, as in phone.css.
import { signal } from '@preact/signals';

const narrow = matchMedia('(max-width: 760px)');

/** Whether the page has one column. */
export const isPhone = signal(narrow.matches);

narrow.addEventListener('change', () => {
  isPhone.value = narrow.matches;
});
