"""The processes of a service: started, supervised, restarted, and how they exit."""
