// Messages about the actions that a person has requested.

import { visibleLine } from '../../presentation/format.ts';
import { closeNotice, notices, type PageNotice } from '../state/actions.ts';
import { Button } from './button.tsx';

const MAX_LINES = 14;

function NoticeBox({ notice }: { notice: PageNotice }) {
  const { id, tone, title, lines } = notice;
  return (
    <div class="notice" data-tone={tone} role={tone === 'bad' ? 'alert' : 'status'}>
      <div class="notice-head">
        <strong>{title}</strong>
        <Button
          kind="quiet"
          icon="close"
          label={`close the message: ${title}`}
          onPress={() => closeNotice(id)}
        />
      </div>
      {lines.slice(0, MAX_LINES).map((line, at) => (
        <p key={at}>{visibleLine(line)}</p>
      ))}
    </div>
  );
}

/** The messages, above everything else. */
export function NoticeList() {
  return (
    <section class="notices" aria-label="messages">
      {notices.value.map((notice) => (
        <NoticeBox key={notice.id} notice={notice} />
      ))}
    </section>
  );
}
