// The form that asks for the daemon's token.
import { useState } from 'preact/hooks';
import { reconnect } from '../state/daemon.ts';
import { login, loginReason } from '../state/session.ts';

/** Asks for the token while one is needed. */
export function Login() {
  const [token, setToken] = useState('');
  const reason = loginReason.value;
  if (reason === null) return null;
  const send = async (): Promise<void> => {
    const isIn = await login(token);
    setToken('');
    if (isIn) reconnect();
  };
  return (
    <div class="veil">
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
    </div>
  );
}
