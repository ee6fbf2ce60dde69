// The form that asks for the daemon's token. What lies behind it gets no keys, so that no token gets there.
import { useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { reconnect } from '../state/daemon.ts';
import { clickedAgent, shownPlace } from '../state/place.ts';
import { login, loginReason } from '../state/session.ts';
import { OpenDialog } from './modal_dialog.tsx';

/** The field that has taken the place of `before`, since the views have begun again; null: there is none. */
function successorOf(before: HTMLElement): HTMLElement | null {
  const label = before.getAttribute('aria-label');
  if (before.isConnected || label === null) return before;
  return document.querySelector<HTMLElement>(`${before.localName}[aria-label="${CSS.escape(label)}"]`);
}

/** Gives the focus back to what had it before, when the form goes. */
function useFocusBack(): void {
  const { before, isTerminal } = useMemo(() => {
    const element = document.activeElement;
    return { before: element, isTerminal: element?.closest('.view .xterm') != null };
  }, []);
  useLayoutEffect(
    () => () =>
      // Until the dialog is gone, nothing else takes the focus.
      queueMicrotask(() => {
        if (!(before instanceof HTMLElement)) return;
        if (isTerminal && !before.isConnected) clickedAgent.value = shownPlace.peek().name;
        else successorOf(before)?.focus();
      }),
    [],
  );
}

function LoginForm({ reason }: { reason: string }) {
  const [token, setToken] = useState('');
  useFocusBack();
  const send = async (): Promise<void> => {
    // At once: what is typed after it is the next attempt.
    setToken('');
    if (await login(token)) reconnect();
  };
  return (
    <OpenDialog class="veil" label="the token of this daemon">
      <form
        id="login"
        class="dialog"
        aria-labelledby="login-title"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h1 id="login-title">This daemon asks for its token</h1>
        <p class="soft">
          <code>berth open</code> in a terminal opens this page without asking.
        </p>
        <label for="token">Token (auth.token)</label>
        <input
          id="token"
          class="field"
          type="password"
          autocomplete="off"
          required
          value={token}
          autofocus
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <p id="login-reason" class="bad" role="alert">
          {reason.split('\n').map((line) => (
            <span key={line}>{line} </span>
          ))}
        </p>
        <button type="submit" class="button" data-kind="main">
          Use it
        </button>
      </form>
    </OpenDialog>
  );
}

/** Asks for the token while one is needed. */
export function Login() {
  const reason = loginReason.value;
  return reason === null ? null : <LoginForm reason={reason} />;
}
