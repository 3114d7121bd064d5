import { Component, type ReactNode } from "react";
import { ErrorNotice } from "./error-notice";

/** Catches errors of a view's rendering, so that the navigation continues to work. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <ErrorNotice error={error} onRetry={() => this.setState({ error: null })} />;
  }
}
